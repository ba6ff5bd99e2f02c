/* Variables of the types that casts name. */
int global_int = -5;
unsigned unsigned_int = 4000000000u;
signed char small = -3;
unsigned char byte = 200;
short half = -2000;
long large = -7000000000;
unsigned long long widest = 0xfedcba9876543210;
float single = -1.5f;
double ratio = 3.14;
char character = 65;
_Bool truth = 1;
int array[4] = {1, -2, 3, -4};
char *text = "hello";
int *pointer = array + 1;
int **twice = &pointer;

int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
int zeros[16];
int many[300];
char greeting[16] = "hello";
char dashes[40] = "a----------------b";
unsigned char bytes[4] = {1, 200, '"', '\n'};
char tag[8] = "abcdefg";
int pair[2] = {5, 6};
short sevens[10] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7};

struct { int *base; long length; } ring = {many, 300}, *ring_pointer = &ring;

void done(void) {
}

int main(void) {
    array[0] = 1;
    for (int i = 0; i < 300; i++)
        many[i] = i;
    done();
    return 0;
}
