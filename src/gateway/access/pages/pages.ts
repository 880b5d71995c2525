import { type Reply, reply } from '../../../platform/endpoint.ts'
import { GatewayError } from '../../../platform/errors.ts'

/** Headers of every reply to a browser during sign-in. Caches store nothing, and the browser sends no referrer, because an address may contain a secret. */
export const privateHeaders = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' } as const

const pageHeaders = {
  ...privateHeaders,
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'x-content-type-options': 'nosniff',
  // With `no-referrer`, a browser sends `Origin: null` with a form. The gateway would then refuse the form on this page.
  'referrer-policy': 'strict-origin',
} as const

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:15vh auto;padding:0 1.5rem;color:#1b1b1f;background:#fff}' +
  'a.button,button{display:inline-block;font:inherit;padding:.5rem 1.2rem;border:1px solid #1b1b1f;border-radius:.4rem;background:#1b1b1f;color:#fff;text-decoration:none;cursor:pointer}' +
  'li{list-style:none;margin:.6rem 0}ul{padding:0}code{background:#eee;padding:.1rem .3rem;border-radius:.2rem}' +
  '@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1f}code{background:#333}a.button,button{background:#eee;color:#1b1b1f}}'

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes text for use in an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => entities[character] ?? '')
}

function page(title: string, body: string, status = 200, headers: Readonly<Record<string, string>> = pageHeaders): Reply {
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escapeHtml(title)}</title><style>${style}</style></head><body><h1>${escapeHtml(title)}</h1>${body}</body></html>\n`
  return reply.text(html, 'text/html; charset=utf-8', headers, status)
}

/** The page with the ways to sign in. */
export function methodsPage(methods: readonly { name: string; title: string }[], returnTo: string | undefined): Reply {
  const query = returnTo === undefined ? '' : `?${new URLSearchParams({ return_to: returnTo })}`
  const links = methods.map(
    ({ name, title }) => `<li><a class="button" href="${escapeHtml(`/auth/${name}${query}`)}">Sign in with ${escapeHtml(title)}</a></li>`,
  )
  const list = links.length === 0 ? '<p>No identity provider is configured here.</p>' : `<ul>${links.join('')}</ul>`
  const again = returnTo === undefined ? '' : ' Then open the page that you wanted once more.'
  return page(
    'Sign in',
    `${list}<p>The operator of this gateway can also make a one-time link for you, with <code>brigade admin sign-in --email you@example.com</code>. Open it in this browser.${again}</p>`,
  )
}

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
  // The reply to the form redirects to the command line. Browsers apply `form-action` also to redirects after a form.
  const policy = pageHeaders['content-security-policy'].replace("form-action 'self'", `form-action 'self' http://127.0.0.1:${port}`)
  return page(
    'Sign in to the command line',
    `<p>You are signed in as <strong>${escapeHtml(email)}</strong>. A program on this computer asks for an API key of yours, which ends in ${keyDays} days.</p>` +
      `<p>Go on only if you have just started <code>brigade login</code>.</p>` +
      `<form method="post" action="/cli/login">${hidden}<button type="submit">Give it a key</button></form>`,
    200,
    { ...pageHeaders, 'content-security-policy': policy },
  )
}

/** The page with the open invitations. */
export function invitationsPage(email: string, invitations: readonly { readonly id: number; readonly orgName: string; readonly role: string }[]): Reply {
  const button = (id: number, decision: string, label: string): string =>
    `<form method="post" action="/invitations" style="display:inline"><input type="hidden" name="id" value="${id}">` +
    `<input type="hidden" name="decision" value="${decision}"><button type="submit">${label}</button></form>`
  const items = invitations.map(
    ({ id, orgName, role }) =>
      `<li><strong>${escapeHtml(orgName)}</strong> invites you as ${escapeHtml(role)}. ${button(id, 'accept', 'Join')} ${button(id, 'decline', 'Decline')}</li>`,
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
  return page('That did not work', `<p>${escapeHtml(message)}</p><p><a class="button" href="/auth">Sign in</a></p>`, status)
}
