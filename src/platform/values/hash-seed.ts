import { randomInt } from 'node:crypto'

/**
 * The seed of hashes in this process. It is random, so that nobody can choose texts with the same hash. No visible result depends on it.
 */
export const hashSeed = randomInt(2 ** 31)
