//! A second look at what was told: pages leave their frames while others are looked for.

use super::crew::{Check, Take, Work, in_order};
use super::hunt::{Hunter, Places, Room};
use super::question::Audience;
use super::told::{Peer, Still};
use super::visit::{State, state_after};
use crate::inspect::{Error, Result};
use crate::report::Stopped;
use crate::target::Machine;
use std::ops::ControlFlow;

/// What maps the frame still of what was told of.
pub fn look_again(
    machine: &dyn Machine,
    hunter: Hunter,
    peers: &[Peer],
    audience: &mut dyn Audience,
) -> Result<Vec<Still>> {
    let told = peers.iter().enumerate().filter(|(_, peer)| peer.maps);
    let told: Vec<(usize, &Peer)> = told.collect();
    let mut found = Found {
        all: Vec::new(),
        audience,
    };
    in_order(&told, &Again { machine, hunter }, &mut found)?;
    Ok(found.all)
}

struct Again<'a> {
    machine: &'a dyn Machine,
    hunter: Hunter,
}

impl Work<(usize, &Peer)> for Again<'_> {
    type Result = Result<Still>;
    type Room = Room;

    fn work(
        &self,
        &(place, peer): &(usize, &Peer),
        room: &mut Room,
        check: &mut Check<'_>,
    ) -> Result<Still> {
        let still = |state, places| Still {
            peer: place,
            state,
            places,
        };
        match self.places(peer, room, check) {
            Ok(places) => Ok(still(State::Read, places)),
            // Whoever may be looked at no more has executed a program with other rights: its memory is another's too.
            Err(Error::Target(error)) => Ok(still(state_after(&error), Places::new())),
            Err(error) => Err(error),
        }
    }
}

impl Again<'_> {
    fn places(&self, peer: &Peer, room: &mut Room, check: &mut Check<'_>) -> Result<Places> {
        let process = self.machine.open(&peer.listed)?.process;
        match process.identity().start_time == peer.start_time {
            true => self.hunter.are_at(&*process, &peer.places, room, check),
            false => Ok(Places::new()),
        }
    }
}

struct Found<'a> {
    all: Vec<Still>,
    audience: &'a mut dyn Audience,
}

impl Take<(usize, &Peer), Result<Still>> for Found<'_> {
    fn take(&mut self, _: &(usize, &Peer), still: Result<Still>) -> Result<ControlFlow<()>> {
        self.all.push(still?);
        Ok(ControlFlow::Continue(()))
    }

    fn check(&mut self) -> Result<(), Stopped> {
        self.audience.check()
    }
}
