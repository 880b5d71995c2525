import { createApp } from '../app.ts'
import { openFoundation } from '../boot.ts'
import { systemClock } from '../platform/clock.ts'
import { loadConfig } from '../platform/config.ts'
import { systemIds } from '../platform/ids.ts'
import { makeLog } from '../platform/log.ts'
import { publicBaseUrl } from '../serve.ts'
import { adminHandler } from './admin-commands.ts'
import { type AdminCommand, askAdmin } from './admin-socket.ts'

/** Runs a command in the process that owns the embedded database, or in this one when none runs. */
export async function runAdmin(command: AdminCommand): Promise<object> {
  const config = loadConfig()
  if (config.DATABASE_URL === null) {
    const asked = await askAdmin(config.DATA_DIR, command)
    if (asked !== null) return asked.result as object
  }
  const log = makeLog('error')
  const foundation = await openFoundation(config, systemClock, log)
  const app = await createApp({ config, clock: systemClock, ids: systemIds, log, ...foundation })
  app.setBaseUrl(publicBaseUrl(config))
  try {
    return (await adminHandler(app)(command)) as object
  } finally {
    await app.stop()
  }
}
