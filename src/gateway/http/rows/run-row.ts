import type { AnyRow, Call } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { type AccessRule, mayCall, type Principal } from '../../../platform/security/principal.ts'
import { type ActCall, type ActDeps, isAudited, recordForbidden, runAudited } from './audited-actions.ts'
import type { parseInput } from './validate.ts'

export type ParsedInput = ReturnType<typeof parseInput>

/** One call of a row, as its transport provides it. Each function is called at most once, in the order of this list. */
export interface RowRun {
  readonly row: AnyRow
  /** The access rule of the address that was called: of the row, or of its session twin. */
  readonly access: AccessRule
  /** Null on rows that accept callers without a credential. */
  readonly principal: Principal | null
  /**
   * Counts the call against the limits of its caller and of its connection, before anything else is checked. Throws `rate_limit_exceeded` and similar
   * errors.
   */
  admit(): void | Promise<void>
  /** Returns the call for the handler. Throws `bad_request` for invalid headers. */
  call(): Call
  /** Reads, bounds and parses the input. Throws `bad_request` and the errors of bodies. */
  read(): ParsedInput | Promise<ParsedInput>
  /** Returns the call for the audit trail. It is called for acts of management only. */
  act(principal: Principal): ActCall
}

/**
 * Runs a row in the order that HTTP and MCP share: limits of the caller, access rule, requirements of the row, input, audit line, handler. Because of this
 * order, a caller without the right learns nothing about the configuration, and the gateway does not read that caller's body. Throws the refusal of the
 * first step that refuses, or the handler's error.
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
  // For some inputs of a row, the audit line has a name of its own.
  const special = typeof row.audit === 'function' ? row.audit(input) : null
  if (principal === null || (special === null && !isAudited(row))) return handle()
  const act = run.act(principal)
  return runAudited(special === null ? act : { ...act, name: special }, deps, handle)
}
