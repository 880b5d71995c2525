/** The operator's commands about webhooks. They run in the process that owns the database. */
import { z } from 'zod'
import type { App } from '../../../composition/gateway.ts'
import { argsOf } from '../admin-args.ts'
import type { AdminCommand } from '../admin-socket.ts'

const listArgs = z.object({ org: z.int().positive().optional() })

/** Runs a command about webhooks and returns its result. Returns null for another command. */
export function webhookCommand(app: App, command: AdminCommand): Promise<object> | null {
  switch (command.name) {
    case 'webhooks-list':
      return listWebhooks(app, argsOf(listArgs, command))
    case 'webhooks-backlog':
      return showBacklog(app)
    default:
      return null
  }
}

async function listWebhooks(app: App, { org }: z.output<typeof listArgs>): Promise<object> {
  const rows = await app.operator.webhooks.list(org ?? null)
  return {
    webhooks: rows.map(row => ({
      id: row.id,
      org_id: row.orgId,
      // Only the host of the URL is shown, because the path may contain a secret of the receiver.
      host: new URL(row.url).host,
      enabled: row.enabled,
      disabled_reason: row.disabledReason,
      failures: row.failures,
      paused_until: row.pausedUntil?.toISOString() ?? null,
      open: row.open,
      oldest_at: row.oldestAt?.toISOString() ?? null,
    })),
  }
}

async function showBacklog(app: App): Promise<object> {
  const { endpoints, disabled, open, dueNow, oldestDueAt, lateMs, dead } = await app.operator.webhooks.backlog()
  return {
    endpoints,
    disabled,
    open,
    due_now: dueNow,
    oldest_due_at: oldestDueAt?.toISOString() ?? null,
    late_s: lateMs === null ? null : Math.round(lateMs / 1000),
    dead_last_day: dead,
  }
}
