import { availableParallelism } from 'node:os'
import { type Config, ConfigError } from '../../platform/config.ts'

/** Maximum number of workers. Each worker has its own pool of database connections, so a larger number is probably a mistake. */
const workersMax = 64

/**
 * Returns the number of processes that WORKERS asks for. `auto` means one process for each core. With the embedded database, it means one process.
 * Throws ConfigError.
 */
export function workerCount({ WORKERS: text, DATABASE_URL: databaseUrl }: Pick<Config, 'WORKERS' | 'DATABASE_URL'>): number {
  if (text === 'auto') return databaseUrl === null ? 1 : Math.min(availableParallelism(), workersMax)
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > workersMax) throw new ConfigError(`WORKERS must be auto or a whole number from 1 to ${workersMax}, not "${text}".`)
  if (count > 1 && databaseUrl === null)
    throw new ConfigError('WORKERS above 1 needs PostgreSQL: the embedded database belongs to one process. Set DATABASE_URL, or leave WORKERS out.')
  return count
}
