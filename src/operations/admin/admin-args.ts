import type { z } from 'zod'
import type { AdminCommand } from './admin-socket.ts'

/** Returns the checked arguments of a command. Throws an Error whose message is one line and says what is wrong with them. */
export function argsOf<T>(schema: z.ZodType<T>, command: AdminCommand): T {
  const parsed = schema.safeParse(command.args)
  if (parsed.success) return parsed.data
  throw new Error(parsed.error.issues.map(issue => `${issue.path.join('.')}: ${issue.message}`).join('; '))
}
