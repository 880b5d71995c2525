import { openFoundation } from '../../../composition/foundation.ts'
import { createApp } from '../../../composition/gateway.ts'
import type { AdminCommand } from '../../../operations/admin/admin-socket.ts'
import { adminHandler } from '../../../operations/admin/commands/admin-commands.ts'
import { systemClock } from '../../../platform/clock.ts'
import type { Config } from '../../../platform/config.ts'
import { makeLog } from '../../../platform/observe/log.ts'
import { publicBaseUrl } from '../../../platform/public-base-url.ts'
import { systemIds } from '../../../platform/values/ids.ts'

/** Runs a command directly on the database, with a gateway that serves no calls. */
export async function runAdminHere(config: Config, command: AdminCommand): Promise<object> {
  const log = makeLog('error')
  const foundation = await openFoundation(config, systemClock, log)
  const app = await createApp({ config, clock: systemClock, ids: systemIds, log, ...foundation, flushesHere: true }).catch(async error => {
    // An open database keeps the process alive, so the command would not exit.
    await foundation.db.close()
    throw error
  })
  app.setBaseUrl(publicBaseUrl(config))
  try {
    return (await adminHandler(app)(command)) as object
  } finally {
    await app.stop()
  }
}
