/** Reads what a call asks for its run: lower caps, and which sub-agent makes the call. */
import { fail } from '../../../platform/errors.ts'
import { uinrFromInr } from '../../../platform/values/money.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The headers with which a call asks for lower caps of its run. */
export const runCapHeader = { cost: 'x-br-run-max-cost-inr', calls: 'x-br-run-max-calls' } as const

const callsMost = 2_147_483_647
const costInrMost = 1_000_000_000
/** The most characters of the id of a sub-agent that are kept. */
const nameCharsMax = 256

/** Returns the caps that the headers ask for, or null when they ask for none. Throws `bad_request`. */
export function runAskOf(headers: Headers): { readonly costUinr: bigint | null; readonly calls: bigint | null } | null {
  const cost = headers[runCapHeader.cost]
  const calls = headers[runCapHeader.calls]
  if (cost === undefined && calls === undefined) return null
  return { costUinr: cost === undefined ? null : costOf(cost), calls: calls === undefined ? null : callsOf(calls) }
}

function costOf(value: string | string[]): bigint {
  const inr = typeof value === 'string' && /^\d{1,10}(?:\.\d{1,6})?$/.test(value.trim()) ? Number(value) : Number.NaN
  if (inr > 0 && inr <= costInrMost) return uinrFromInr(inr)
  throw fail('bad_request', { message: `${runCapHeader.cost}: must be an amount in rupees above 0, with at most six decimal places.` })
}

function callsOf(value: string | string[]): bigint {
  const calls = typeof value === 'string' && /^\d{1,10}$/.test(value.trim()) ? Number(value) : Number.NaN
  if (calls >= 1 && calls <= callsMost) return BigInt(calls)
  throw fail('bad_request', { message: `${runCapHeader.calls}: must be a whole number of calls, at least 1.` })
}

/**
 * Returns the sub-agent that makes the call and the one above it, or null when the main agent makes it. Claude Code names both. Codex names the thread of
 * a sub-agent beside its session, and opencode the session of the main agent beside that of a sub-agent.
 */
export function subagentOf(headers: Headers, runId: string): { readonly name: string; readonly above: string | null } | null {
  const claude = nameIn(headers, 'x-claude-code-agent-id')
  if (claude !== null) return { name: claude, above: nameIn(headers, 'x-claude-code-parent-agent-id') }
  if (headers['session-id'] === undefined) return opencodeSubagent(headers, runId)
  const thread = nameIn(headers, 'thread-id')
  return thread === null || thread === runId || thread === headers['session-id'] ? null : { name: thread, above: nameIn(headers, 'x-codex-parent-thread-id') }
}

function opencodeSubagent(headers: Headers, runId: string): { readonly name: string; readonly above: null } | null {
  if (headers['x-parent-session-id'] === undefined) return null
  const session = nameIn(headers, 'x-session-id')
  return session === null || session === runId ? null : { name: session, above: null }
}

function nameIn(headers: Headers, header: string): string | null {
  const value = headers[header]
  return typeof value === 'string' && value !== '' ? value.slice(0, nameCharsMax) : null
}
