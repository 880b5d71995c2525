import { createApp } from '../app.ts'
import { openFoundation } from '../boot.ts'
import { systemClock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import { systemIds } from '../platform/ids.ts'
import { makeLog } from '../platform/log.ts'
import { publicBaseUrl } from '../serve.ts'
import { adminHandler } from './admin-commands.ts'
import type { AdminCommand } from './admin-socket.ts'

/** Runs a command on the database itself, with a gateway that nobody calls. */
export async function runAdminHere(config: Config, command: AdminCommand): Promise<object> {
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
