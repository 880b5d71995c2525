import { availableParallelism } from 'node:os'
import { type Config, ConfigError } from '../../platform/config.ts'

/** More workers than this are a mistake: each has a pool of connections to the database. */
const workersMax = 64

/** How many processes WORKERS asks for; `auto` is one for each core, and one on the embedded database. Throws ConfigError. */
export function workerCount({ WORKERS: text, DATABASE_URL: databaseUrl }: Pick<Config, 'WORKERS' | 'DATABASE_URL'>): number {
  if (text === 'auto') return databaseUrl === null ? 1 : Math.min(availableParallelism(), workersMax)
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > workersMax) throw new ConfigError(`WORKERS must be auto or a whole number from 1 to ${workersMax}, not "${text}".`)
  if (count > 1 && databaseUrl === null)
    throw new ConfigError('WORKERS above 1 needs PostgreSQL: the embedded database belongs to one process. Set DATABASE_URL, or leave WORKERS out.')
  return count
}
