/** Pages for printing. A page fits on one sheet of A4, is readable on a phone, and loads no remote resources. */
import { createHash } from 'node:crypto'
import { type Reply, reply } from '../../../../platform/endpoint.ts'
import { type Html, html } from './html-text.ts'
import { printStyle } from './print-style.ts'

const styleHash = createHash('sha256').update(printStyle).digest('base64')

const headers = {
  'cache-control': 'private, no-store',
  // The policy allows the one style element of the page, by its hash. It allows no script, image, font, form or frame.
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Returns a page with this title. A browser suggests the title as the file name when a person prints the page to a file. */
export function printable(title: string, sheet: Html): Reply {
  const page = html`<!doctype html>
<html lang="en-IN">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>${title}</title>
<style>`
  const rest = html`</style>
</head>
<body>
<main class="sheet">
${sheet}
</main>
</body>
</html>
`
  return reply.text(`${page.text}${printStyle}${rest.text}`, 'text/html; charset=utf-8', headers)
}

/** Returns one pair of a list of terms and values. */
export function fact(term: string, value: Html | string): Html {
  return html`<div><dt>${term}</dt><dd>${value}</dd></div>`
}

/** Returns text that a person typed, with its own direction of writing. */
export function typed(text: string): Html {
  return html`<bdi>${text}</bdi>`
}
