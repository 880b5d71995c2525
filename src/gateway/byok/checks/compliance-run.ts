import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Candidate, Compliance, ComplianceCheck, ComplianceDeps } from './compliance.ts'
import { checkErrors, checkTools, readChat, readStream } from './compliance-checks.ts'
import { ComplianceDial } from './compliance-dial.ts'

/**
 * Tests a server with a few small requests, one after the other, sent in the same way as calls. The checks `chat` and `stream` are required. The
 * checks `usage`, `tools`, `errors` and `latency` only inform. Failures of the server are in the result. Throws `bad_request` for an address that a
 * user may not reach. Throws the signal's reason when the signal aborts.
 */
export async function testCompliance(candidate: Candidate, signal: CancelSignal, deps: ComplianceDeps): Promise<Compliance> {
  const dial = new ComplianceDial(candidate, signal, deps)
  try {
    return resultOf(await checksOf(candidate, dial))
  } finally {
    dial.end()
  }
}

/** Returns the result for a server that could not be tested. */
export function untestable(detail: string): Compliance {
  return resultOf([{ name: 'chat', required: true, pass: false, latencyMs: 0, detail }, ...skipped(['stream', 'usage', 'tools', 'errors', 'latency'])])
}

async function checksOf({ expectsTools }: Candidate, dial: ComplianceDial): Promise<ComplianceCheck[]> {
  const chat = await readChat(dial)
  if (!chat.check.pass) return [chat.check, ...skipped(['stream', 'usage', 'tools', 'errors', 'latency'])]
  const stream = await readStream(dial)
  return [
    chat.check,
    stream.check,
    usageCheck(chat.hasUsage, stream.hasUsage),
    expectsTools ? await checkTools(dial) : { ...notice('tools', true), detail: 'skipped: the catalog model calls no tools' },
    await checkErrors(dial),
    { ...notice('latency', stream.check.pass), latencyMs: stream.check.latencyMs, detail: stream.timing },
  ]
}

const notice = (name: ComplianceCheck['name'], pass: boolean): Omit<ComplianceCheck, 'detail'> => ({ name, required: false, pass, latencyMs: 0 })

function usageCheck(inReply: boolean, inStream: boolean): ComplianceCheck {
  const missing = [...(inReply ? [] : ['replies']), ...(inStream ? [] : ['streams (stream_options.include_usage)'])]
  const detail = missing.length === 0 ? 'reported in replies and streams' : `not reported in ${missing.join(' and ')}: tokens are estimated there`
  return { ...notice('usage', missing.length === 0), detail }
}

function skipped(names: readonly ComplianceCheck['name'][]): ComplianceCheck[] {
  return names.map(name => ({ name, required: name === 'stream', pass: false, latencyMs: 0, detail: 'not tried, because chat failed' }))
}

function resultOf(checks: readonly ComplianceCheck[]): Compliance {
  return { pass: checks.every(check => check.pass || !check.required), checks }
}
