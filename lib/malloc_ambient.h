/* malloc_ambient.h: which of libc's functions allocate what their caller gets.   (floor 6) */
#ifndef MALLOC_AMBIENT_H
#define MALLOC_AMBIENT_H

/* Has the first reapEnter find out. */
void malloc_ambient_start(void);

#endif
