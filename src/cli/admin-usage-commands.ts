/** What the operator does with the sums of usage, run inside the process that owns the database. */
import { z } from 'zod'
import type { App } from '../app.ts'
import { argsOf } from './admin-args.ts'
import type { AdminCommand } from './admin-socket.ts'
import { asOperator } from './operator-act.ts'

const rebuildArgs = z.object({ from: z.string().max(40).optional(), to: z.string().max(40).optional() })

/** What a command about usage answers; null when the command is none of these. */
export function usageCommand(app: App, command: AdminCommand): Promise<object> | null {
  return command.name === 'usage-rebuild' ? rebuild(app, argsOf(rebuildArgs, command)) : null
}

async function rebuild(app: App, { from, to }: z.output<typeof rebuildArgs>): Promise<object> {
  const days = await asOperator(app.audit, { act: 'usage-rebuild', orgId: null, target: null }, () => app.operator.usage.rebuild(from, to))
  return { rebuilt: days.length, days: days.map(({ day, events, summed }) => ({ day, events, summed_before: summed })) }
}
