import { type Reply, reply } from '../../../../platform/endpoint.ts'

const headers = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** Returns the page that a person sees after a connection was made. A slug has no character that HTML interprets. */
export function connectedPage(slug: string, baseUrl: string): Reply {
  const home = `${baseUrl}/`.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Connected</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}</style></head>
<body><main><h1>Connected</h1><p>Your agents can now call the approved tools of <b>${slug}</b> as you. You can close this page.</p>
<p><a href="${home}console/tools?tab=connections">Your connections</a> · <a href="${home}">Go to Brigade</a></p></main></body></html>
`
  return reply.text(html, 'text/html; charset=utf-8', headers)
}
