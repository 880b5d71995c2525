import { randomBytes, randomInt } from 'node:crypto'

/** The seed of hashes in this process. It is random, so that an attacker cannot choose texts with the same hash. No visible result depends on the seed. */
export const hashSeed = randomInt(2 ** 31)

/** The key of keyed hashes in this process. Such a hash says nothing about its text to anybody who does not have the key, and the key is kept in memory only. */
export const hashKey = randomBytes(32)
