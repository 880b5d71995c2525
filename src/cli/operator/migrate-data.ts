import { readFileSync } from 'node:fs'
import type { BucketPlace } from '../../operations/move/memory.ts'
import { type MoveReport, moveInstallation } from '../../operations/move/move.ts'
import { systemClock } from '../../platform/clock.ts'
import { type Config, loadConfig } from '../../platform/config.ts'
import { makeLog } from '../../platform/observe/log.ts'
import { Secret } from '../../platform/security/secret.ts'
import { systemIds } from '../../platform/values/ids.ts'
import { fileReason, wrongUsage } from '../command-error.ts'
import type { MoveFlags } from './migrate-data-flags.ts'

/** Moves the installation as the flags say. Throws CommandError (2) for flags that exclude each other, and errors of the move. */
export function runMove(flags: MoveFlags, progress: (line: string) => void, config: Config = loadConfig()): Promise<MoveReport> {
  const to = flags.to === undefined ? config.DATABASE_URL : new Secret(flags.to)
  if (to === null) throw wrongUsage('say where to: DATABASE_URL, or --to postgres://…')
  if (!/^postgres(ql)?:/.test(to.reveal())) throw wrongUsage('the target must be a PostgreSQL URL: postgres://user:password@host/database')
  const options = { from: flags.from ?? config.DATA_DIR, to, bucket: bucketOf(flags), keepsFolders: flags.keepFolders === true }
  if (options.bucket !== null && options.keepsFolders) throw wrongUsage('--bucket moves memory and --keep-folders leaves it: give one of them')
  return moveInstallation(options, { config, clock: systemClock, ids: systemIds, log: makeLog('error'), progress })
}

function bucketOf({ bucket, endpoint, region = 'us-east-1', accessKey, secretKeyFile }: MoveFlags): BucketPlace | null {
  if (bucket === undefined && endpoint === undefined && accessKey === undefined && secretKeyFile === undefined) return null
  if (bucket === undefined || endpoint === undefined || accessKey === undefined || secretKeyFile === undefined)
    throw wrongUsage('a bucket needs --bucket, --endpoint, --access-key and --secret-key-file')
  if (!URL.canParse(endpoint)) throw wrongUsage(`--endpoint must be a URL, not "${endpoint}"`)
  return { bucket, endpoint: endpoint.replace(/\/+$/, ''), region, accessKey, secretKey: new Secret(secretIn(secretKeyFile)) }
}

function secretIn(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw wrongUsage(`cannot read ${file}: ${fileReason(error)}`, error)
  }
  if (text === '') throw wrongUsage(`${file} is empty`)
  return text
}
