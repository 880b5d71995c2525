/**
 * Resolves host names that users give, with the hosts file and the name servers of the machine, within a time limit. The system's own look-up (getaddrinfo)
 * would block a thread of the small thread pool while a name server does not answer. File access and all other look-ups need the same threads. Decision
 * 0404 gives the reasons.
 */
import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP, type LookupFunction } from 'node:net'

export interface NameLookupOptions {
  /** Path of the hosts file. Default: that of the machine. */
  readonly hostsFile?: string
  /** Name servers as `address:port`. Default: those of the machine. */
  readonly servers?: readonly string[]
  /** Longest wait for a name server at the first try, in milliseconds. The second try takes twice as long. */
  readonly timeoutMs?: number
}

const hostsFileDefault = '/etc/hosts'
/** A larger hosts file is not read. */
const hostsCharsMax = 1_000_000
const timeoutDefaultMs = 1_500
const triesMax = 2

/**
 * Returns a look-up function for sockets. The function fails with `ENOTFOUND` for a name without an address, and with `EAI_AGAIN` when no name server
 * answers.
 */
export function makeNameLookup({ hostsFile = hostsFileDefault, servers, timeoutMs = timeoutDefaultMs }: NameLookupOptions = {}): LookupFunction {
  const resolved = async (name: string): Promise<readonly LookupAddress[]> => {
    const known = addressesIn(await readFile(hostsFile, 'utf8').catch(() => ''), name)
    if (known.length > 0) return known
    // Each name gets a new resolver, because a new one reads the machine's list of name servers again.
    const resolver = new Resolver({ timeout: timeoutMs, tries: triesMax })
    if (servers !== undefined) resolver.setServers(servers)
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.length > 0) return found.map(address => ({ address, family: isIP(address) }))
    const isKnown = answers.every(answer => answer.status === 'fulfilled' || noSuchName.has(codeOf(answer.reason)))
    throw Object.assign(new Error(`${isKnown ? 'no address' : 'no answer'} for ${name}`), { code: isKnown ? 'ENOTFOUND' : 'EAI_AGAIN' })
  }
  return (hostname, options, callback) => {
    const version = isIP(hostname)
    const answer = version === 0 ? resolved(bare(hostname)) : Promise.resolve([{ address: hostname, family: version }])
    answer.then(
      found => {
        const wanted = ofFamily(found, options.family)
        const [first] = wanted
        if (first === undefined) callback(Object.assign(new Error(`no address of that family for ${hostname}`), { code: 'ENOTFOUND' }), '', 0)
        else if (options.all === true) callback(null, [...wanted])
        else callback(null, first.address, first.family)
      },
      (error: Error) => callback(error, '', 0),
    )
  }
}

/** Codes for a name that has no address or is not a valid name. */
const noSuchName: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])
const codeOf = (error: unknown): unknown => (typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined)
const bare = (name: string): string => name.toLowerCase().replace(/\.$/, '')

function ofFamily(found: readonly LookupAddress[], requested: number | 'IPv4' | 'IPv6' | undefined): readonly LookupAddress[] {
  if (requested === undefined || requested === 0) return found
  const family = requested === 'IPv6' || requested === 6 ? 6 : 4
  return found.filter(each => each.family === family)
}

/** Returns the addresses of a name in a hosts file. */
function addressesIn(text: string, name: string): readonly LookupAddress[] {
  if (text.length > hostsCharsMax) return []
  return text.split('\n').flatMap(line => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const family = isIP(address)
    return family !== 0 && names.some(each => bare(each) === name) ? [{ address, family }] : []
  })
}
