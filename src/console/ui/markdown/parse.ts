import { GFM, parser } from '@lezer/markdown'

/** The parser of GitHub's Markdown. The editor marks words with the same one. */
export const markdown = parser.configure(GFM)

/** A node of the tree. */
export type MarkdownNode = ReturnType<typeof markdown.parse>['topNode']

/** Returns the children of a node, in order. */
export function childrenOf(node: MarkdownNode): MarkdownNode[] {
  const children: MarkdownNode[] = []
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child)
  return children
}

/** Returns the first child of a kind. */
export const childOf = (node: MarkdownNode, name: string): MarkdownNode | null => childrenOf(node).find(child => child.name === name) ?? null

/** Returns the form in which labels of references are compared. */
export const labelOf = (text: string): string =>
  text
    .replace(/^\[|\]$/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase()

/** Returns the addresses of the references of a text, by label. The first of several with one label counts. */
export function referencesOf(root: MarkdownNode, text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  root.cursor().iterate(node => {
    if (node.name !== 'LinkReference') return
    const label = childOf(node.node, 'LinkLabel')
    const url = childOf(node.node, 'URL')
    if (label === null || url === null) return
    const name = labelOf(text.slice(label.from, label.to))
    if (!found.has(name)) found.set(name, plainAddress(text.slice(url.from, url.to)))
  })
  return found
}

/** Returns an address without the angle brackets and the escapes of Markdown. */
export const plainAddress = (address: string): string => address.replace(/^<|>$/g, '').replace(/\\([!-/:-@[-`{-~])/g, '$1')

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  reg: '®',
  trade: '™',
  hellip: '…',
  ndash: '–',
  mdash: '—',
  larr: '←',
  rarr: '→',
  times: '×',
  middot: '·',
  bull: '•',
  euro: '€',
  deg: '°',
}

/** Returns the character of an entity such as &amp; or &#8377;. An entity that it does not know stays as it is. */
export function characterOf(entity: string): string {
  const name = entity.slice(1, -1)
  const number = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : /^#/.test(name) ? Number.parseInt(name.slice(1), 10) : null
  if (number === null) return entities[name] ?? entity
  return Number.isInteger(number) && number > 0 && number <= 0x10ffff ? String.fromCodePoint(number) : '\ufffd'
}
