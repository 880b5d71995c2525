import type { Reply } from '../../../platform/endpoint.ts'
import { GatewayError } from '../../../platform/errors.ts'
import { escapeHtml, page, pageHeaders } from './page-frame.ts'

/** The page with the ways to sign in. */
export function methodsPage(
  methods: readonly { readonly name: string; readonly title: string; readonly icon?: string }[],
  returnTo: string | undefined,
): Reply {
  const query = returnTo === undefined ? '' : `?${new URLSearchParams({ return_to: returnTo })}`
  const links = methods.map(
    ({ name, title, icon }) =>
      `<li><a class="button plain" href="${escapeHtml(`/auth/${name}${query}`)}">${pictureOf(icon)}<span>Continue with ${escapeHtml(title)}</span></a></li>`,
  )
  const list =
    links.length === 0
      ? '<p>Ask the person who runs this gateway for a sign-in link, and open it in this browser.</p>'
      : `<ul>${links.join('')}</ul><p>If you have a sign-in link, open it in this browser.</p>`
  const again = returnTo === undefined ? '' : ' Then open the page that you wanted again.'
  return page(
    'Sign in',
    `${list}<details${links.length === 0 ? ' open' : ''}><summary>You run this gateway</summary>` +
      `<p>${links.length === 0 ? 'No identity provider is configured. ' : ''}This command makes a link that works once:</p>` +
      `<code class="line" tabindex="0">npx brigade admin sign-in --email you@example.com</code><p>Open the link in this browser.${again}</p></details>`,
    200,
    pageHeaders('', ' data:'),
  )
}

/** Returns the picture of a way to sign in. The name beside it says the same, so the picture has no text. */
const pictureOf = (icon: string | undefined): string => (icon === undefined ? '' : `<img src="${escapeHtml(icon)}" alt="" width="20" height="20">`)

/** The page that asks for a click before a one-time link is used. Programs that scan links in mail and chat open the link but do not send the form. */
export function linkPage(token: string, email: string): Reply {
  return page(
    'Sign in',
    `<p>This link signs you in as <strong>${escapeHtml(email)}</strong>. It works once.</p>` +
      `<form method="post" action="/auth/link"><input type="hidden" name="token" value="${escapeHtml(token)}"><button type="submit">Sign in</button></form>`,
  )
}

/**
 * The page that asks for a click before the command line gets a code. Only the person knows whether they have just started the command line. The
 * headers of the browser cannot prove it.
 */
export function handOverPage(email: string, { port, state, challenge, keyDays }: { port: number; state: string; challenge: string; keyDays: number }): Reply {
  const fields = Object.entries({ port: String(port), state, code_challenge: challenge, code_challenge_method: 'S256' })
  const hidden = fields.map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`).join('')
  return page(
    'Sign in to the command line',
    `<p>You are signed in as <strong>${escapeHtml(email)}</strong>. A program on this computer asks for an API key of yours, which ends in ${keyDays} days.</p>` +
      `<p>Go on only if you have just started <code>brigade login</code>.</p>` +
      `<form method="post" action="/cli/login">${hidden}<button type="submit">Give it a key</button></form>`,
    200,
    // The reply to the form redirects to the command line. Browsers apply `form-action` also to redirects after a form.
    pageHeaders(` http://127.0.0.1:${port}`),
  )
}

/** The page with the open invitations. */
export function invitationsPage(email: string, invitations: readonly { readonly id: number; readonly orgName: string; readonly role: string }[]): Reply {
  const button = (id: number, decision: string, label: string, look: string): string =>
    `<form method="post" action="/invitations"><input type="hidden" name="id" value="${id}">` +
    `<input type="hidden" name="decision" value="${decision}"><button type="submit"${look}>${label}</button></form>`
  const items = invitations.map(
    ({ id, orgName, role }) =>
      `<li class="invitation"><span><strong>${escapeHtml(orgName)}</strong> invites you as ${escapeHtml(role)}.</span>` +
      `<div class="row">${button(id, 'accept', 'Join', '')}${button(id, 'decline', 'Decline', ' class="plain"')}</div></li>`,
  )
  const list = items.length === 0 ? '<p>There is no open invitation to your address.</p>' : `<ul>${items.join('')}</ul>`
  return page('Invitations', `<p>You are signed in as <strong>${escapeHtml(email)}</strong>.</p>${list}`)
}

/** Returns the reply of `answer`. When `answer` throws a named error, a browser gets a page about it, and other clients get the error envelope. */
export async function forBrowser(accept: string | undefined, answer: () => Promise<Reply>): Promise<Reply> {
  try {
    return await answer()
  } catch (error) {
    if (error instanceof GatewayError && error.errorName !== 'internal_error' && accept?.includes('text/html')) return failurePage(error.message, error.status)
    throw error
  }
}

/** The page about an error. */
function failurePage(message: string, status: number): Reply {
  return page('That did not work', `<p>${escapeHtml(message)}</p><a class="button" href="/auth">Sign in</a>`, status)
}
