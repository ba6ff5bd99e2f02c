//! Walks through types and expressions.

use super::{CostWalk, Prefix};

impl CostWalk<'_> {
    pub(super) fn type_(&mut self, at: usize) -> Option<usize> {
        self.nested(at, |walk, at| {
            if let Some(end) = walk.builtin_type(at) {
                return Some(end);
            }
            if let Some(at) = walk.text(at, b"U") {
                let at = walk.source_name(at)?;
                let at = walk.template_args(at).unwrap_or(at);
                let end = walk.type_(at)?;
                return walk.insert(end);
            }
            let qualified = walk.cv_qualifiers(at);
            if qualified > at && !walk.starts_function_type(qualified) {
                let end = walk.type_(qualified)?;
                return walk.insert(end);
            }
            if let Some(end) = walk.class_enum_type(at) {
                return walk.insert(end);
            }
            if let Some((_, end)) = walk.substitution(at)
                && walk.peek(end) != Some(b'I')
            {
                return Some(end);
            }
            for production in [Self::function_type, Self::array_type, Self::vector_type, Self::pointer_to_member_type] {
                if let Some(end) = production(walk, at) {
                    return walk.insert(end);
                }
            }
            if let Some(end) = walk.template_param(at)
                && (walk.peek(end) != Some(b'I') || (walk.is_in_conversion && !walk.has_arguments_twice(end)))
            {
                return walk.insert(end);
            }
            if let Some(end) = walk.template_template_param(at) {
                let end = walk.template_args(end)?;
                return walk.insert(end);
            }
            if let Some(end) = walk.decltype(at) {
                return walk.insert(end);
            }
            let inner = walk.one_of(at, b"PROCG").or_else(|| walk.text(at, b"Dp"))?;
            let end = walk.type_(inner)?;
            walk.insert(end)
        })
    }

    /// In a conversion operator the arguments after a template parameter are read ahead, on a copy of the
    /// substitutions.
    fn has_arguments_twice(&mut self, at: usize) -> bool {
        let before = (self.substitutions.len(), self.not_substitutions.len());
        if self.step(at + 4 * before.0).is_none() {
            return false;
        }
        let end = self.template_args(at);
        self.substitutions.truncate(before.0);
        self.not_substitutions.truncate(before.1);
        end.is_some_and(|end| self.peek(end) == Some(b'I'))
    }

    fn builtin_type(&mut self, at: usize) -> Option<usize> {
        self.step(1)?;
        match self.peek(at)? {
            b'u' => self.source_name(at + 1),
            b'D' => self.extended_builtin_type(at + 1),
            byte => b"vwbcahstijlmxynofdegz".contains(&byte).then_some(at + 1),
        }
    }

    fn extended_builtin_type(&mut self, at: usize) -> Option<usize> {
        if let Some(end) = self.text(at, b"F16b").or_else(|| self.one_of(at, b"defhisuacn")) {
            return Some(end);
        }
        let fixed_point = self.optional_text(at, b"SD");
        if let Some(at) = self.one_of(fixed_point, b"AR") {
            return self.one_of(at, b"stijlm");
        }
        let size = self.one_of(at, b"FBU")?;
        if !self.peek(size)?.is_ascii_digit() {
            return match self.peek(at) {
                Some(b'F') => None,
                _ => self.expression(size),
            };
        }
        let end = self.number(size)?;
        match self.peek(at) {
            Some(b'F') => self.one_of(end, b"x_"),
            _ => self.text(end, b"_"),
        }
    }

    pub(super) fn cv_qualifiers(&self, at: usize) -> usize {
        let at = self.optional_text(at, b"r");
        let at = self.optional_text(at, b"V");
        self.optional_text(at, b"K")
    }

    fn starts_function_type(&self, at: usize) -> bool {
        self.peek(at) == Some(b'F') || matches!(self.pair(at), Some(b"Do" | b"DO" | b"Dx" | b"Dw"))
    }

    fn function_type(&mut self, at: usize) -> Option<usize> {
        let at = self.cv_qualifiers(at);
        let exception = self.text(at, b"Do").or_else(|| {
            let at = self.text(at, b"DO")?;
            self.shape(at, "xE")
        });
        let at = self.optional_text(exception.unwrap_or(at), b"Dx");
        let at = self.text(at, b"F")?;
        let at = self.optional_text(at, b"Y");
        let at = self.one_or_more(at, Self::type_)?;
        let at = self.one_of(at, b"RO").unwrap_or(at);
        self.text(at, b"E")
    }

    fn class_enum_type(&mut self, at: usize) -> Option<usize> {
        if let Some(end) = self.name(at) {
            return Some(end);
        }
        let at = self.text(at, b"T")?;
        let at = self.one_of(at, b"sue")?;
        self.name(at)
    }

    fn array_type(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"A")?;
        let length = self.number(at).or_else(|| self.expression(at));
        self.shape(length.unwrap_or(at), "_t")
    }

    fn vector_type(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"Dv")?;
        let length = self.number(at).or_else(|| self.expression(at))?;
        self.shape(length, "_t")
    }

    fn pointer_to_member_type(&mut self, at: usize) -> Option<usize> {
        self.shape(at, "Mtt")
    }

    pub(super) fn template_param(&mut self, at: usize) -> Option<usize> {
        self.step(1)?;
        self.shape(at, "T#_")
    }

    fn template_template_param(&mut self, at: usize) -> Option<usize> {
        if let Some((_, end)) = self.substitution(at) {
            return Some(end);
        }
        let end = self.template_param(at)?;
        self.insert(end)
    }

    pub(super) fn decltype(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"D")?;
        let at = self.one_of(at, b"tT")?;
        self.shape(at, "xE")
    }

    pub(super) fn substitution(&mut self, at: usize) -> Option<(Prefix, usize)> {
        self.step(1)?;
        let at = self.text(at, b"S")?;
        if let Some(end) = self.one_of(at, b"tabsiod") {
            return Some((Prefix::WellKnown, end));
        }
        let (number, at) = match self.number_in(at, 36) {
            Some((number, at)) => (number.checked_add(1)?, at),
            None => (0, at),
        };
        if number >= self.substitutions.len() {
            return None;
        }
        Some((Prefix::Substitution(number), self.text(at, b"_")?))
    }

    pub(super) fn template_args(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"I")?;
        let at = self.one_or_more(at, Self::template_arg)?;
        self.text(at, b"E")
    }

    pub(super) fn template_arg(&mut self, at: usize) -> Option<usize> {
        self.nested(at, |walk, at| {
            if let Some(at) = walk.text(at, b"X") {
                return walk.shape(at, "xE");
            }
            if let Some(end) = walk.expr_primary(at) {
                return Some(end);
            }
            if let Some(end) = walk.type_(at) {
                return Some(end);
            }
            let at = walk.one_of(at, b"JI")?;
            walk.shape(at, "AE")
        })
    }

    fn expr_primary(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"L")?;
        if let Some(at) = self.type_(at) {
            let literal = self.count(at, |byte| byte != b'E');
            return self.text(at + literal, b"E");
        }
        let at = self.mangled_name(at)?;
        self.text(at, b"E")
    }

    pub(super) fn member_name(&mut self, at: usize) -> Option<usize> {
        let at = self.unqualified_name(at)?;
        Some(self.template_args(at).unwrap_or(at))
    }

    pub(super) fn expression(&mut self, at: usize) -> Option<usize> {
        self.nested(at, |walk, at| {
            if let Some(at) = walk.text(at, b"pp_").or_else(|| walk.text(at, b"mm_")) {
                return walk.expression(at);
            }
            let inside = at + 2;
            let shape = match walk.pair(at).unwrap_or_default() {
                b"cl" => "xXE",
                b"cv" => {
                    let at = walk.type_(inside)?;
                    return match walk.text(at, b"_") {
                        Some(at) => walk.shape(at, "XE"),
                        None => walk.expression(at),
                    };
                }
                b"tl" => "tXE",
                b"il" => "XE",
                b"dc" | b"sc" | b"cc" | b"rc" => "tx",
                b"ti" | b"st" | b"at" => "t",
                b"te" | b"sz" | b"az" | b"nx" | b"sp" | b"tw" => "x",
                b"so" => "txnE",
                b"dt" | b"pt" => "xm",
                b"ds" => "xx",
                b"sZ" => {
                    return walk.template_param(inside).or_else(|| walk.function_param(inside));
                }
                b"sP" => "AE",
                b"fl" | b"fr" => return walk.fold(inside, "x"),
                b"fR" => return walk.fold(inside, "xx"),
                b"fL" if !walk.peek(inside).unwrap_or(b'0').is_ascii_digit() => {
                    return walk.fold(inside, "xx");
                }
                b"tr" => "",
                b"gs" => match walk.new_or_delete(inside) {
                    Some(end) => return Some(end),
                    None => return walk.plain_expression(at),
                },
                _ => return walk.plain_expression(at),
            };
            walk.shape(inside, shape)
        })
    }

    fn plain_expression(&mut self, at: usize) -> Option<usize> {
        for production in
            [Self::new_or_delete, Self::template_param, Self::function_param, Self::unresolved_name, Self::expr_primary]
        {
            if let Some(end) = production(self, at) {
                return Some(end);
            }
        }
        // After `new_or_delete` has failed, `nw`, `na`, `dl` and `da` are read again, as operators.
        let (arity, at) = self.operator_name(at, true)?;
        match arity {
            1 => self.shape(at, "x"),
            2 => self.shape(at, "xx"),
            3 => self.shape(at, "xxx"),
            _ => None,
        }
    }

    fn new_or_delete(&mut self, at: usize) -> Option<usize> {
        let inside = at + 2;
        match self.pair(at)? {
            b"nw" | b"na" => {
                let at = self.shape(inside, "X_t")?;
                self.text(at, b"E").or_else(|| self.shape(at, "piXE"))
            }
            b"dl" | b"da" => self.expression(inside),
            _ => None,
        }
    }

    fn fold(&mut self, at: usize, operands: &str) -> Option<usize> {
        (super::arity(self.pair(at)?) == Some(2)).then_some(())?;
        self.shape(at + 2, operands)
    }

    fn function_param(&mut self, at: usize) -> Option<usize> {
        let at = self.text(at, b"f")?;
        let at = match self.text(at, b"L") {
            Some(at) => self.number(at)?,
            None => at,
        };
        let at = self.text(at, b"p")?;
        let at = self.cv_qualifiers(at);
        self.text(at, b"T").or_else(|| self.shape(at, "#_"))
    }

    fn unresolved_name(&mut self, at: usize) -> Option<usize> {
        if let Some(at) = self.text(at, b"gs") {
            if let Some(end) = self.base_unresolved_name(at) {
                return Some(end);
            }
            let at = self.text(at, b"sr")?;
            return self.qualified(at);
        }
        if let Some(end) = self.base_unresolved_name(at) {
            return Some(end);
        }
        let at = self.text(at, b"sr")?;
        if let Some(at) = self.text(at, b"N") {
            let at = self.unresolved_type(at)?;
            return self.qualified(at);
        }
        match self.unresolved_type(at) {
            Some(at) => self.base_unresolved_name(at),
            None => self.qualified(at),
        }
    }

    /// Levels, and the name in them.
    fn qualified(&mut self, at: usize) -> Option<usize> {
        let at = self.one_or_more(at, Self::simple_id)?;
        let at = self.text(at, b"E")?;
        self.base_unresolved_name(at)
    }

    fn unresolved_type(&mut self, at: usize) -> Option<usize> {
        if let Some(at) = self.template_param(at) {
            let end = self.template_args(at).unwrap_or(at);
            return self.insert(end);
        }
        if let Some(end) = self.decltype(at) {
            return self.insert(end);
        }
        Some(self.substitution(at)?.1)
    }

    fn simple_id(&mut self, at: usize) -> Option<usize> {
        let at = self.source_name(at)?;
        Some(self.template_args(at).unwrap_or(at))
    }

    fn base_unresolved_name(&mut self, at: usize) -> Option<usize> {
        if let Some(end) = self.simple_id(at) {
            return Some(end);
        }
        if let Some(at) = self.text(at, b"on") {
            let (_, at) = self.operator_name(at, false)?;
            return Some(self.template_args(at).unwrap_or(at));
        }
        let at = self.text(at, b"dn")?;
        self.unresolved_type(at).or_else(|| self.simple_id(at))
    }
}
