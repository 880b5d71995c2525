import { randomInt } from 'node:crypto'

/** The seed of hashes in this process. It is random, so nobody can choose texts that have the same hash. No result that a caller sees depends on it. */
export const hashSeed = randomInt(2 ** 31)
