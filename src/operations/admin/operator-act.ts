import { z } from 'zod'
import type { AuditTrail } from '../../gateway/audit/audit.ts'
import { GatewayError } from '../../platform/errors.ts'

/** The ids that the audit line takes from a command's result, if the result contains them. */
const madeShape = z.object({ org_id: z.int(), user_id: z.int().nullish(), key_id: z.int().nullish() })

/**
 * Writes the audit line of a command before the command runs, and completes the line afterwards. Without `orgId` or `target`, the line names the
 * organisation, person and key in the result. Throws the error of the command. When the line cannot be written, the command does not run.
 */
export async function asOperator<T>(
  audit: AuditTrail,
  { act, orgId, target }: { readonly act: string; readonly orgId: number | null; readonly target: string | null },
  run: () => Promise<T>,
): Promise<T> {
  const line = await audit.begin({ orgId, actor: 'operator', act, target, sourceIp: null, requestId: null })
  let result: T
  try {
    result = await run()
  } catch (thrown) {
    // The operator must see the error of the command, even when the audit line cannot be completed.
    await audit.end(line, thrown instanceof GatewayError ? thrown.code : 'failed').catch(() => undefined)
    throw thrown
  }
  const made = madeShape.safeParse(result).data
  await audit.end(line, 'ok', target ?? targetOf(made), made?.org_id ?? null)
  return result
}

function targetOf(made: z.output<typeof madeShape> | undefined): string | null {
  const pairs = [...(made?.user_id ? [`user=${made.user_id}`] : []), ...(made?.key_id ? [`key=${made.key_id}`] : [])]
  return pairs.length === 0 ? null : pairs.join(' ')
}
