import { type AdminCommand, askAdmin } from '../../../operations/admin/admin-socket.ts'
import { loadConfig } from '../../../platform/config.ts'

/** Runs a command in the process that owns the embedded database. When no process runs, the command runs in this process. */
export async function runAdmin(command: AdminCommand): Promise<object> {
  const config = loadConfig()
  if (config.DATABASE_URL === null) {
    const asked = await askAdmin(config.DATA_DIR, command)
    if (asked !== null) return asked.result as object
  }
  // The whole gateway is loaded only when it has to run here.
  const { runAdminHere } = await import('./run-admin-here.ts')
  return runAdminHere(config, command)
}
