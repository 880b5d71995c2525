import type { AnyRow, Call } from '../../../platform/endpoint.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { type AccessRule, mayCall, type Principal } from '../../../platform/security/principal.ts'
import { noSuchPath } from '../path-hint.ts'
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
export async function runRow(run: RowRun, deps: RowDeps): Promise<unknown> {
  const admitted = run.admit()
  if (admitted !== undefined) await admitted
  const refused = refusalOf(run, deps)
  if (refused !== null) throw await refused
  const call = run.call()
  const read = run.read()
  return handleRow(run, read instanceof Promise ? await read : read, call, deps)
}

/** The dependencies of the steps. */
export type RowDeps = ActDeps & { readonly services: object }

/**
 * Checks the access rule and the requirements of a row. Returns null, or the refusal of the rule after its line in the audit trail is written. Throws the
 * refusal of the requirements, and `not_found` when the row does not exist for the caller. This function and `handleRow` are steps of `runRow`. `serveRow` calls them itself, because each call of HTTP then needs fewer
 * promises.
 */
export function refusalOf(run: RowRun, deps: RowDeps): Promise<GatewayError> | null {
  const { row, principal } = run
  const verdict = principal === null ? null : mayCall(principal, run.access)
  if (verdict?.ok === false && verdict.isHidden === true) throw fail('not_found', { message: noSuchPath })
  if (principal !== null && verdict?.ok === false) return forbidden(run, principal, verdict.why, deps)
  row.requires?.(deps.services)
  return null
}

async function forbidden(run: RowRun, principal: Principal, why: string, deps: RowDeps): Promise<GatewayError> {
  if (isAudited(run.row)) await recordForbidden(run.act(principal), deps)
  return fail('forbidden', { message: why })
}

/** Calls the handler of a row, for an audited act after its line in the audit trail. */
export function handleRow(run: RowRun, input: ParsedInput, call: Call, deps: RowDeps): unknown {
  const { row, principal } = run
  // For some inputs of a row, the audit line has a name of its own.
  const special = typeof row.audit === 'function' ? row.audit(input) : null
  if (principal === null || (special === null && !isAudited(row))) return row.handle(deps.services, input, call)
  const act = run.act(principal)
  return runAct(special === null ? act : { ...act, name: special }, row, input, call, deps)
}

/** Runs an act. It is a function of its own so that other calls make no closure. */
function runAct(act: ActCall, row: AnyRow, input: ParsedInput, call: Call, deps: RowDeps): unknown {
  return runAudited(act, deps, () => row.handle(deps.services, input, call))
}
