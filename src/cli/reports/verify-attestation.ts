/** Implements `brigade verify`: reads an attestation and keys, checks the signature, and prints the statement. */
import { readFile } from 'node:fs/promises'
import { attestationKeysPath } from '../../gateway/compliance/attestation/attestation.ts'
import { attestation } from '../../gateway/compliance/attestation/attestation-shape.ts'
import { verifyAttestation } from '../../gateway/compliance/attestation/verify.ts'
import { clientSettings } from '../client-settings.ts'
import { CommandError, fileReason, wrongUsage } from '../command-error.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { gatewayFetch } from '../gateway-fetch.ts'
import { contentOf, textOf } from '../memory/memory-content.ts'

/**
 * Checks one file and prints its statement. Throws CommandError 1 (`not_valid`) when these keys did not sign it. Throws CommandError 2 when it cannot
 * be read.
 */
export async function verifyFile(file: string, flags: { readonly keys?: string; readonly baseUrl?: string; readonly json?: boolean }): Promise<void> {
  const text = textOf(await contentOf(file, undefined))
  const { keys, from } = await keysOf(flags)
  const verdict = verifyAttestation(text, keys)
  if (!verdict.isValid)
    throw new CommandError(`not valid: ${verdict.why}. Keys: ${from}.`, { code: 'not_valid', evidence: { valid: false, why: verdict.why, keys_from: from } })
  const { keyId, payload } = verdict
  if (flags.json === true) return printJson({ valid: true, key_id: keyId, keys_from: from, payload })
  printLine(plain(`valid: signed with the key ${keyId}, of ${from}`))
  if (isOpen(from)) printLine('The keys came over plain HTTP, where anybody on the way can replace them: keep a key file that you have checked.')
  for (const line of linesOf(payload)) printLine(plain(line))
}

/** Returns the key set and its source. The address in the attestation is never used, because a forger could put their own address there. */
export async function keysOf({ keys, baseUrl }: { readonly keys?: string; readonly baseUrl?: string }): Promise<{ keys: unknown; from: string }> {
  if (keys !== undefined && !/^https?:\/\//i.test(keys)) return { keys: parsed(await readKeys(keys), keys), from: keys }
  const address = clientSettings(baseUrl === undefined ? {} : { baseUrl }).baseUrl
  const url = keys ?? address + attestationKeysPath
  const reply = await (keys === undefined ? gatewayFetch(address)(url) : fetched(url))
  if (!reply.ok)
    throw new CommandError(`the keys at ${url} cannot be had: status ${reply.status}. Is it a gateway that publishes them?`, { status: reply.status })
  return { keys: parsed(await reply.text(), url), from: url }
}

const isOpen = (from: string): boolean => from.startsWith('http:') && !/^(localhost|127\..*|\[::1\])$/.test(new URL(from).hostname)

const fetchTimeoutMs = 30_000

function fetched(url: string): Promise<Response> {
  if (!URL.canParse(url)) throw wrongUsage(`--keys: "${url}" is no address.`)
  return fetch(url, { signal: AbortSignal.timeout(fetchTimeoutMs) }).catch(cause => {
    throw new CommandError(`the keys at ${url} cannot be had. Check the address and your network, or give a kept file: --keys keys.json.`, {
      code: 'unreachable',
      cause,
    })
  })
}

function readKeys(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(cause => {
    throw wrongUsage(`--keys: ${path} cannot be read: ${fileReason(cause)}.`, cause)
  })
}

function parsed(text: string, from: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new CommandError(`${from} does not hold a key set: it is not JSON. A gateway publishes one at ${attestationKeysPath}.`, { cause })
  }
}

/** Returns the lines to print. They contain only signed content. */
function linesOf(payload: unknown): string[] {
  const { data } = attestation.shape.payload.safeParse(payload)
  if (data === undefined) return ['it states something that this version of brigade has no words for; --json shows it']
  const { summary, period, evidence } = data
  const share = (requests: number, pct: number): string => `${requests} of ${summary.total} requests (${pct.toFixed(2)} %)`
  const declared = summary.declared_requests === 0 ? '' : `, ${summary.declared_requests} of them on own servers that it says are in India`
  const unknown = summary.unknown_requests === 0 ? '' : `, ${summary.unknown_requests} of them to providers whose place is not known`
  const listed = { limit: 'the newest calls; the figures are of all', retention: 'older calls are listed no longer; the figures are of all' }
  return [
    `of: organisation ${data.org_id} at ${data.issuer}, made ${data.generated_at}`,
    `window: ${data.window}, the IST days ${period.from} to ${period.to}`,
    `in India: ${share(summary.india_requests, summary.india_pct)}`,
    `not proven to be in India: ${share(summary.global_requests, summary.global_pct)}${declared}${unknown}`,
    `prompts sent out to have their tokens counted: ${data.token_counts.total}, ${data.token_counts.global_requests} of them not proven to be in India`,
    `evidence: ${evidence.count} calls, ${evidence.capped_by === null ? 'all there were' : listed[evidence.capped_by]}`,
  ]
}
