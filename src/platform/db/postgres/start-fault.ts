/** What a person reads when a gateway starts and PostgreSQL does not serve it. */
import { DatabaseUnavailableError } from '../db.ts'

/** Where a connection goes, without the password. A host that begins with a slash is the folder of a socket. */
export interface DatabasePlace {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
}

const byCode: Readonly<Record<string, (place: DatabasePlace, at: string) => string>> = {
  ECONNREFUSED: (_place, at) => `Nothing accepts connections at ${at}. Start PostgreSQL there, or correct the host and port in DATABASE_URL.`,
  ENOENT: (_place, at) => `There is no socket of PostgreSQL at ${at}. Start PostgreSQL, or correct DATABASE_URL.`,
  ENOTFOUND: ({ host }) => `The host ${host} of DATABASE_URL has no address. Correct the name, or the name service of this machine.`,
  EAI_AGAIN: ({ host }) => `The name service of this machine does not answer for ${host}, the host of DATABASE_URL.`,
  EHOSTUNREACH: (_place, at) => `This machine has no way to ${at}, the address of DATABASE_URL.`,
  ENETUNREACH: (_place, at) => `This machine has no way to ${at}, the address of DATABASE_URL.`,
  // SQLSTATEs: wrong password, refused by pg_hba.conf, no such database, no right to connect, too many connections, a server that starts or stops.
  '28P01': ({ user }, at) => `PostgreSQL at ${at} refuses the password of the user "${user}". Correct DATABASE_URL.`,
  '28000': ({ user, database }, at) =>
    `PostgreSQL at ${at} does not let the user "${user}" into the database "${database}". Correct DATABASE_URL, or pg_hba.conf of the server.`,
  '3D000': ({ database }, at) => `PostgreSQL at ${at} has no database "${database}". Create it, or correct DATABASE_URL.`,
  '42501': ({ user, database }, at) =>
    `The user "${user}" may not create what Brigade needs in the database "${database}" at ${at}. Grant it CREATE on the database and on its schema.`,
  '53300': (_place, at) => `PostgreSQL at ${at} has no connection left. Raise max_connections there, or lower DB_POOL_MAX.`,
  '57P03': (_place, at) => `PostgreSQL at ${at} is starting or stopping. Start Brigade again when it is ready.`,
}

const tlsCodes = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
])

/**
 * Returns one sentence for an error of the first connection: what is wrong, at which host and port, and which setting to change. It contains no password.
 * Returns null for an error that says nothing about the connection, which is a fault of the program.
 */
export function startFault(thrown: unknown, place: DatabasePlace): string | null {
  if (!(thrown instanceof Error)) return null
  const at = place.host.startsWith('/') ? place.host : `${place.host.includes(':') ? `[${place.host}]` : place.host}:${place.port}`
  const code = codeOf(thrown) ?? codeOf(thrown.cause) ?? ''
  const known = byCode[code]
  if (known !== undefined) return known(place, at)
  if (tlsCodes.has(code)) return `The certificate of PostgreSQL at ${at} is not trusted (${code}). Give its authority with sslrootcert in DATABASE_URL.`
  if (/does not support SSL/.test(thrown.message))
    return `PostgreSQL at ${at} offers no TLS, and DATABASE_URL asks for it. Remove sslmode, or set up TLS on the server.`
  if (/^PostgreSQL 14 or newer/.test(thrown.message)) return `${thrown.message}, at ${at}. Name a newer server in DATABASE_URL.`
  if (thrown instanceof DatabaseUnavailableError) return `PostgreSQL at ${at} does not answer. Check that it runs and that DATABASE_URL names it.`
  return null
}

/** Returns the code of an error, or of the first one of several addresses. */
function codeOf(thrown: unknown): string | null {
  if (thrown instanceof AggregateError) return codeOf(thrown.errors[0])
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : null
}
