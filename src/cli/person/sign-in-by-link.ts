import { CommandError, exitCodes, wrongUsage } from '../command-error.ts'

const patienceMs = 10_000

/** Uses up a one-time sign-in link of the gateway. Returns the cookie of the session. Throws CommandError when the link is invalid or was used. */
export async function signInByLink(baseUrl: string, link: string): Promise<string> {
  const token = URL.canParse(link) ? new URL(link).searchParams.get('token') : null
  if (token === null || !new URL(link).pathname.endsWith('/auth/link'))
    throw wrongUsage('a sign-in link looks like https://gateway.example.com/auth/link?token=….')
  const reply = await fetch(`${baseUrl}/auth/link`, {
    method: 'POST',
    redirect: 'manual',
    headers: { accept: 'application/json' },
    body: new URLSearchParams({ token }),
    signal: AbortSignal.timeout(patienceMs),
  })
  await reply.body?.cancel()
  const cookie = reply.headers
    .getSetCookie()
    .find(line => line.startsWith('br_session='))
    ?.split(';')[0]
  if (reply.status !== 302 || cookie === undefined)
    throw new CommandError(
      'the gateway does not accept the sign-in link: it was used already, has expired or was not copied whole. Ask the operator for another one.',
      {
        exitCode: exitCodes.refused,
        code: 'not_signed_in',
        status: reply.status,
      },
    )
  return cookie
}

/** Ends the session. A gateway that does not answer keeps it until it expires. */
export async function signOut(baseUrl: string, cookie: string): Promise<void> {
  try {
    const reply = await fetch(`${baseUrl}/auth/logout`, { method: 'POST', headers: { cookie }, redirect: 'manual', signal: AbortSignal.timeout(patienceMs) })
    await reply.body?.cancel()
  } catch {
    return
  }
}
