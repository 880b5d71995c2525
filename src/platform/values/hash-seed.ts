import { randomInt } from 'node:crypto'

/** The seed of hashes in this process. It is random, so that an attacker cannot choose texts with the same hash. No visible result depends on the seed. */
export const hashSeed = randomInt(2 ** 31)
