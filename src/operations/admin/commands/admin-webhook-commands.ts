/** The operator's commands about webhooks. They run in the process that owns the database. */
import { z } from 'zod'
import type { App } from '../../../composition/gateway.ts'
import { backlogView, endpointView } from '../../../gateway/webhooks/operator-webhooks.ts'
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
  return { webhooks: (await app.operator.webhooks.list(org ?? null)).map(endpointView) }
}

async function showBacklog(app: App): Promise<object> {
  return backlogView(await app.operator.webhooks.backlog())
}
