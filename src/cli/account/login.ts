import { z } from 'zod'
import type { Clock } from '../../platform/clock.ts'
import { hashKey } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { receiveCode } from './code-receiver.ts'
import { saveCredentials } from './credentials.ts'

export interface LoginOptions {
  /** The address of the gateway. It may end with a slash. */
  readonly baseUrl: string
  /** Folder of this user's settings. credentials.json is written there. */
  readonly folder: string
  readonly clock: Clock
  readonly ids: Ids
  /** Opens the address in the person's browser, in addition to printing it. When null, the address is only printed. */
  readonly openBrowser: ((url: string) => void) | null
  readonly print: (line: string) => void
}

/** How long the person may take in the browser. */
const patienceMs = 5 * 60_000
const requestTimeoutMs = 10_000
const stateBytes = 24
/** Gives a verifier of 43 characters, the minimum of RFC 7636. */
const verifierBytes = 32

const keyShape = z.object({ key: z.string(), expires_at: z.string() })
const whoamiShape = z.object({
  org: z.object({ name: z.string() }),
  key: z.object({ name: z.string() }),
  role: z.string().nullable(),
})

/** Signs in through the browser and stores the key that the gateway returns. Throws an error whose message is one line and says what to do. */
export async function login({ baseUrl: given, folder, clock, ids, openBrowser, print }: LoginOptions): Promise<void> {
  const baseUrl = checkedUrl(given)
  await expectGateway(baseUrl)
  const state = ids.secret('', stateBytes)
  const verifier = ids.secret('', verifierBytes)
  const receiver = await receiveCode(state)
  try {
    const challenge = hashKey(verifier).toString('base64url')
    const url = `${baseUrl}/cli/login?port=${receiver.port}&state=${state}&code_challenge=${challenge}&code_challenge_method=S256`
    print(`Sign in to ${baseUrl} in a browser on this computer:\n\n  ${url}\n`)
    openBrowser?.(url)
    const { key, expires_at: end } = await fetchKey(baseUrl, await inTime(receiver.code, clock), verifier)
    const me = await whoami(baseUrl, key)
    const path = saveCredentials(folder, { base_url: baseUrl, key })
    print(
      `Signed in to ${me.org.name} as ${me.role ?? 'member'}, with the key "${me.key.name}", which ends on ${end.slice(0, 10)}.\nIt is kept in ${path}, which only you can read.`,
    )
  } finally {
    await receiver.close()
  }
}

function checkedUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw new Error(`--base-url must be an http or https URL, not "${text}".`)
  return text.replace(/\/+$/, '')
}

async function get(url: string, key: string | null): Promise<{ status: number; json: unknown }> {
  const response = await fetch(url, {
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
    redirect: 'error',
    signal: AbortSignal.timeout(requestTimeoutMs),
  })
  return { status: response.status, json: await response.json() }
}

/** Exchanges the code and the verifier for the key. */
async function fetchKey(baseUrl: string, code: string, verifier: string): Promise<z.output<typeof keyShape>> {
  const response = await fetch(`${baseUrl}/cli/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code, code_verifier: verifier }),
    redirect: 'error',
    signal: AbortSignal.timeout(requestTimeoutMs),
  })
  const parsed = keyShape.safeParse(await response.json())
  if (response.status !== 201 || !parsed.success) throw new Error(`the gateway gave no key for the code (status ${response.status}). Run brigade login again.`)
  return parsed.data
}

/** Throws when the address is not a gateway. This check runs before the person is sent to a browser. */
async function expectGateway(baseUrl: string): Promise<void> {
  const reply = await get(`${baseUrl}/v1/me/whoami`, null).catch((cause: unknown) => {
    throw new Error(`there is no gateway at ${baseUrl}. Give its address with --base-url.`, { cause })
  })
  if (reply.status !== 401) throw new Error(`what answers at ${baseUrl} is no gateway (status ${reply.status}). Give its address with --base-url.`)
}

async function whoami(baseUrl: string, key: string): Promise<z.output<typeof whoamiShape>> {
  const { status, json } = await get(`${baseUrl}/v1/me/whoami`, key)
  const parsed = whoamiShape.safeParse(json)
  if (status !== 200 || !parsed.success) throw new Error(`the gateway does not accept the key that it handed over (status ${status}). Run brigade login again.`)
  return parsed.data
}

async function inTime(key: Promise<string>, clock: Clock): Promise<string> {
  let stop = (): void => {}
  const tooLate = new Promise<never>((_resolve, reject) => {
    stop = clock.after(patienceMs, () => reject(new Error('nobody signed in within 5 minutes. Run brigade login again.')))
  })
  try {
    return await Promise.race([key, tooLate])
  } finally {
    stop()
  }
}
