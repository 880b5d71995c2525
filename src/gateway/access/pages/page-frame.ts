/** The frame of the pages that the gateway renders itself: one card in the middle, in the design of the console, without script. */
import { createHash } from 'node:crypto'
import { type Reply, reply } from '../../../platform/endpoint.ts'

/** Headers of every reply to a browser during sign-in. Caches store nothing, and the browser sends no referrer, because an address may contain a secret. */
export const privateHeaders = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' } as const

// The colours are those of src/console/ui/tokens.css.
const style = `
:root{color-scheme:light dark;--page:light-dark(#f7f7f9,#0d0e11);--card:light-dark(#fff,#15171b);--line:light-dark(#e3e4e9,#292c33);--text:light-dark(#16181d,#eceef2);--quiet:light-dark(#5b6170,#9ba2b0);--accent:light-dark(#3b4fe0,#4c60f0);--link:light-dark(#3344c8,#9aa8ff);--soft:light-dark(#f3f4f6,#1d2026)}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;grid-template-columns:minmax(0,1fr);place-items:center;padding:1.5rem 1rem;font:15px/1.55 Inter,ui-sans-serif,system-ui,sans-serif;color:var(--text);background:var(--page)}
main,.card,details{grid-template-columns:minmax(0,1fr)}
main{width:100%;max-width:25rem;display:grid;gap:1.5rem}
.brand{display:flex;align-items:center;gap:.6rem;font-weight:600;letter-spacing:-.01em}
.brand svg{width:1.75rem;height:1.75rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:.75rem;padding:1.75rem;display:grid;gap:1rem}
h1{font-size:1.25rem;line-height:1.3;letter-spacing:-.015em;font-weight:600;margin:0}
p{margin:0;color:var(--quiet);overflow-wrap:anywhere}
p strong,li strong{color:var(--text);font-weight:600}
ul{list-style:none;margin:0;padding:0;display:grid;gap:.625rem}
ul:has(.invitation){gap:1.25rem}
li.invitation{border-top:1px solid var(--line);padding-top:1rem;display:grid;gap:.75rem;color:var(--quiet)}
a{color:var(--link)}
.button,button{display:flex;align-items:center;justify-content:center;width:100%;min-height:2.5rem;padding:.4rem 1rem;font:inherit;font-weight:500;border-radius:.5rem;border:1px solid transparent;background:var(--accent);color:#fff;text-decoration:none;cursor:pointer}
.button img{margin-right:.6rem;flex:none;object-fit:contain}
.button:hover,button:hover{filter:brightness(1.06)}
.button.plain,button.plain{background:var(--card);color:var(--text);border-color:var(--line)}
.button.plain:hover,button.plain:hover{background:var(--soft);filter:none}
.row{display:grid;grid-auto-flow:column;grid-auto-columns:1fr;gap:.5rem}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
details{border-top:1px solid var(--line);padding-top:.875rem}
summary{cursor:pointer;color:var(--quiet);font-size:.875rem}
details>*+*{margin-top:.625rem}
code{font:.8125rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--soft);border-radius:.3rem;padding:.1rem .3rem;color:var(--text)}
code.line{display:block;padding:.6rem .75rem;border-radius:.5rem;white-space:pre-wrap;overflow-wrap:anywhere;user-select:all}
`

/** The policy allows this style by its digest, so no other style can be injected. */
const styleDigest = createHash('sha256').update(style).digest('base64')
const mark =
  '<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#3b4fe0"/><path d="M9 10.5h14M9 16h14M9 21.5h8" stroke="#fff" stroke-width="2.6" stroke-linecap="round" fill="none"/></svg>'

/** Headers of a page. `formTargets` are sources to which a form may lead in addition to this gateway. `pictures` are the sources of pictures. */
export const pageHeaders = (formTargets = '', pictures = '') =>
  ({
    ...privateHeaders,
    'content-security-policy': `default-src 'none'; style-src 'sha256-${styleDigest}'; ${pictures === '' ? '' : `img-src${pictures}; `}form-action 'self'${formTargets}; frame-ancestors 'none'; base-uri 'none'`,
    'x-content-type-options': 'nosniff',
    // With `no-referrer`, a browser sends `Origin: null` with a form. The gateway would then refuse the form on this page.
    'referrer-policy': 'strict-origin',
    'cross-origin-opener-policy': 'same-origin',
  }) as const

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes text for use in an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => entities[character] ?? '')
}

/** Returns a page. `title` is text, and `body` is HTML in which the caller has escaped what others wrote. */
export function page(title: string, body: string, status = 200, headers: Readonly<Record<string, string>> = pageHeaders()): Reply {
  const name = escapeHtml(title)
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${name} · Brigade</title><style>${style}</style>`
  const card = `<div class="card"><h1>${name}</h1>${body}</div>`
  const html = `<!doctype html><html lang="en"><head>${head}</head><body><main><div class="brand">${mark}Brigade</div>${card}</main></body></html>\n`
  return reply.text(html, 'text/html; charset=utf-8', headers, status)
}
