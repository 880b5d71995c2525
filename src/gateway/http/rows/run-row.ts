import type { AnyRow, Call } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { type AccessRule, mayCall, type Principal } from '../../../platform/security/principal.ts'
import { type ActCall, type ActDeps, isAudited, recordForbidden, runAudited } from './audited-actions.ts'
import type { parseInput } from './validate.ts'

export type ParsedInput = ReturnType<typeof parseInput>

/** One call of a row, as its transport brings it. Each function is called at most once, in the order in which they are listed. */
export interface RowRun {
  readonly row: AnyRow
  /** The rule of the address that was called: of the row, or of its session twin. */
  readonly access: AccessRule
  /** Null on rows that take callers without a credential. */
  readonly principal: Principal | null
  /** Counts the call against the limits of its caller and of its connection. Throws `rate_limit_exceeded` and the like. */
  admit(): void | Promise<void>
  /** The call as the handler gets it. It throws `bad_request` for headers that are wrong. */
  call(): Call
  /** Reads, bounds and parses the input. It throws `bad_request` and the errors of bodies. */
  read(): ParsedInput | Promise<ParsedInput>
  /** The call as a line of the audit trail; asked for acts of management only. */
  act(principal: Principal): ActCall
}

/**
 * Runs a row in the one order that HTTP and MCP share: limits of the caller, access rule, what the row requires, input, audit line, handler.
 * A caller who may not call learns nothing of what is configured, and nothing is read for that caller. Throws the refusal of the first
 * step that refuses, or what the handler throws.
 */
export async function runRow(run: RowRun, deps: ActDeps & { readonly services: object }): Promise<unknown> {
  const { row, principal } = run
  const admitted = run.admit()
  if (admitted !== undefined) await admitted
  if (principal !== null) {
    const verdict = mayCall(principal, run.access)
    if (!verdict.ok) {
      if (isAudited(row)) await recordForbidden(run.act(principal), deps)
      throw fail('forbidden', { message: verdict.why })
    }
  }
  row.requires?.(deps.services)
  const call = run.call()
  const read = run.read()
  const input = read instanceof Promise ? await read : read
  const handle = (): unknown => row.handle(deps.services, input, call)
  // An act for this input only, under a name of its own.
  const special = typeof row.audit === 'function' ? row.audit(input) : null
  if (principal === null || (special === null && !isAudited(row))) return handle()
  const act = run.act(principal)
  return runAudited(special === null ? act : { ...act, name: special }, deps, handle)
}
