/** Pages that are made to be printed and kept: one sheet of A4 on paper, readable on a phone, with nothing from anywhere else. */
import { createHash } from 'node:crypto'
import { type Reply, reply } from '../../../../platform/endpoint.ts'
import { type Html, html } from './html-text.ts'
import { printStyle } from './print-style.ts'

const styleHash = createHash('sha256').update(printStyle).digest('base64')

const headers = {
  'cache-control': 'private, no-store',
  // The one style element of the page, by its hash. No script, no image, no font, no form, no frame.
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
} as const

/** A sheet with that title, which a browser offers as the name of the file when it prints. */
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

/** A term and what it is, as a list of such pairs shows it. */
export function fact(term: string, value: Html | string): Html {
  return html`<div><dt>${term}</dt><dd>${value}</dd></div>`
}

/** Text that a person typed, which keeps its own direction of writing. */
export function typed(text: string): Html {
  return html`<bdi>${text}</bdi>`
}
