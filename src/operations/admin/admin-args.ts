import type { z } from 'zod'
import type { AdminCommand } from './admin-socket.ts'

/** The checked arguments, or an error of one line that a person at a terminal can act on. */
export function argsOf<T>(schema: z.ZodType<T>, command: AdminCommand): T {
  const parsed = schema.safeParse(command.args)
  if (parsed.success) return parsed.data
  throw new Error(parsed.error.issues.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; '))
}
