/**
 * Bounds on how finely a body may be cut. A chunk of HTTP costs about a microsecond however short it is, and one read of a socket can bring thousands
 * of them. So a body of one-byte chunks blocks the event loop. Decision 0461 says why the bounds have these values.
 */

/** The first pieces of a body may have any size. */
export const freePieces = 4096
/** Minimum average size of the pieces of a body that has more than `freePieces`. */
export const leastPieceBytes = 32

/** Returns true when a body that came as `bytes` in `pieces` so far is cut too finely to be read further. */
export const isTooFine = (pieces: number, bytes: number): boolean => pieces > freePieces && bytes < pieces * leastPieceBytes
