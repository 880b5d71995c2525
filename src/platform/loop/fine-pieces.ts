/**
 * Bounds the number of small pieces in a body. Every HTTP chunk costs about a microsecond, even if it is short, and one read of a socket can bring
 * thousands of chunks. So a body of one-byte chunks would block the event loop. Decision 0461 says why the bounds have these values.
 */

/** The first pieces of a body may have any size. */
export const freePieces = 4096
/** Minimum average size of the pieces of a body that has more than `freePieces`. */
export const leastPieceBytes = 32

/** Returns true when the pieces of a body are too small to continue reading. `bytes` and `pieces` are the numbers that have arrived so far. */
export const isTooFine = (pieces: number, bytes: number): boolean => pieces > freePieces && bytes < pieces * leastPieceBytes
