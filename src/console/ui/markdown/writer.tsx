import { createElement, type ReactNode } from 'react'
import { Icon } from '../icon.tsx'
import { characterOf, childOf, childrenOf, labelOf, type MarkdownNode, plainAddress } from './parse.ts'

/** Draws a link. `isImage`: the text says what a picture shows, which the console does not load. */
export type DrawLink = (link: { readonly address: string; readonly children: ReactNode; readonly isImage: boolean }) => ReactNode

/** Elements of one document. What is after them is shown as it is written. */
const elementsMax = 20_000
/** Levels of quotes, lists and emphasis inside each other. Deeper ones are shown as they are written. */
const depthMax = 24

/** Writes the tree of a Markdown text as React elements. No text becomes HTML, so nothing in it can run. */
export class MarkdownWriter {
  readonly #text: string
  readonly #references: ReadonlyMap<string, string>
  readonly #link: DrawLink
  #left = elementsMax
  /** The level of the last heading. Levels are not left out, whatever the text does, so that the outline of the page stays whole. */
  #level: number
  readonly #headingAbove: number

  constructor(text: string, references: ReadonlyMap<string, string>, options: { readonly link: DrawLink; readonly headingAbove: number }) {
    this.#text = text
    this.#references = references
    this.#link = options.link
    this.#level = options.headingAbove
    this.#headingAbove = options.headingAbove
  }

  /** Returns the blocks of a document, and as the last one what has no room as it is written. */
  document(root: MarkdownNode): ReactNode[] {
    const written: ReactNode[] = []
    for (const node of childrenOf(root)) {
      if (this.#left <= 0) return [...written, this.#raw(node.from, root.to, 'rest')]
      written.push(this.#block(node, 0))
    }
    return written
  }

  #slice({ from, to }: { readonly from: number; readonly to: number }): string {
    return this.#text.slice(from, to)
  }

  #raw(from: number, to: number, key: string | number): ReactNode {
    return (
      <pre key={key} className="md-raw">
        {this.#text.slice(from, to)}
      </pre>
    )
  }

  #blocks(node: MarkdownNode, depth: number): ReactNode[] {
    return childrenOf(node).map(child => this.#block(child, depth + 1))
  }

  #block(node: MarkdownNode, depth: number): ReactNode {
    const key = node.from
    if (--this.#left <= 0 || depth > depthMax) return this.#raw(node.from, node.to, key)
    const heading = /^(?:ATX|Setext)Heading(\d)$/.exec(node.name)
    if (heading !== null) return this.#heading(node, Number(heading[1]))
    switch (node.name) {
      case 'Paragraph':
        return <p key={key}>{this.#inline(node, depth)}</p>
      case 'Blockquote':
        return <blockquote key={key}>{this.#blocks(node, depth)}</blockquote>
      case 'BulletList':
        return <ul key={key}>{this.#blocks(node, depth)}</ul>
      case 'OrderedList':
        return (
          <ol key={key} start={Number.parseInt(this.#slice(node), 10) || 1}>
            {this.#blocks(node, depth)}
          </ol>
        )
      case 'ListItem':
        return (
          <li key={key} className={childOf(node, 'Task') === null ? undefined : 'md-task-item'}>
            {this.#blocks(node, depth)}
          </li>
        )
      case 'Task':
        return this.#task(node, depth)
      case 'FencedCode':
      case 'CodeBlock':
        return this.#code(node)
      case 'HorizontalRule':
        return <hr key={key} />
      case 'Table':
        return this.#table(node, depth)
      case 'HTMLBlock':
      case 'CommentBlock':
      case 'ProcessingInstructionBlock':
        return this.#raw(node.from, node.to, key)
      default:
        // Marks, and references that are shown where they are used.
        return null
    }
  }

  #heading(node: MarkdownNode, asked: number): ReactNode {
    const content = this.#inline(node, 0)
    if (content.every(part => typeof part === 'string' && part.trim() === '')) return null
    this.#level = Math.min(6, asked + this.#headingAbove, this.#level + 1)
    return createElement(`h${this.#level}`, { key: node.from, className: `md-h${asked}` }, ...content)
  }

  #task(node: MarkdownNode, depth: number): ReactNode {
    const marker = childOf(node, 'TaskMarker')
    const isDone = marker !== null && /x/i.test(this.#slice(marker))
    return (
      <p key={node.from} className={isDone ? 'md-task md-done' : 'md-task'}>
        <span className="md-box">{isDone && <Icon name="check" size={12} />}</span>
        <span className="visually-hidden">{isDone ? 'Done: ' : 'Open: '}</span>
        <span>{this.#inline(node, depth)}</span>
      </p>
    )
  }

  #code(node: MarkdownNode): ReactNode {
    const lines = childrenOf(node).filter(({ name }) => name === 'CodeText')
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must take the focus, so that keys can scroll it.
      <pre key={node.from} tabIndex={0}>
        <code>{lines.map(line => this.#slice(line)).join('')}</code>
      </pre>
    )
  }

  #table(node: MarkdownNode, depth: number): ReactNode {
    const rows = childrenOf(node).filter(({ name }) => name === 'TableHeader' || name === 'TableRow')
    const delimiter = childrenOf(node).find(({ name }) => name === 'TableDelimiter')
    const aligns = delimiter === undefined ? [] : alignsOf(this.#slice(delimiter))
    const cellsOf = (row: MarkdownNode): MarkdownNode[] => childrenOf(row).filter(({ name }) => name === 'TableCell')
    const [head, ...body] = rows
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls must take the focus, so that keys can scroll it.
      // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
      <div key={node.from} className="md-table" tabIndex={0} role="group" aria-label="Table">
        <table>
          {head && (
            <thead>
              <tr>
                {cellsOf(head).map((cell, column) => (
                  <th key={cell.from} scope="col" className={aligns[column]}>
                    {this.#inline(cell, depth)}
                  </th>
                ))}
              </tr>
            </thead>
          )}
          <tbody>
            {body.map(row => (
              <tr key={row.from}>
                {cellsOf(row).map((cell, column) => (
                  <td key={cell.from} className={aligns[column]}>
                    {this.#inline(cell, depth)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )
  }

  /** Returns the text and the elements between two places of a node. */
  #inline(node: MarkdownNode, depth: number, from = node.from, to = node.to): ReactNode[] {
    const parts: ReactNode[] = []
    let at = from
    for (const child of childrenOf(node)) {
      if (child.from < from || child.to > to) continue
      if (child.from > at) parts.push(this.#text.slice(at, child.from))
      parts.push(this.#span(child, depth + 1))
      at = child.to
    }
    if (at < to) parts.push(this.#text.slice(at, to))
    return parts.filter(part => part !== null && part !== '')
  }

  #span(node: MarkdownNode, depth: number): ReactNode {
    const key = node.from
    if (/Mark(er)?$/.test(node.name)) return null
    if (--this.#left <= 0 || depth > depthMax) return this.#slice(node)
    switch (node.name) {
      case 'Emphasis':
        return <em key={key}>{this.#inline(node, depth)}</em>
      case 'StrongEmphasis':
        return <strong key={key}>{this.#inline(node, depth)}</strong>
      case 'Strikethrough':
        return <del key={key}>{this.#inline(node, depth)}</del>
      case 'InlineCode':
        return <code key={key}>{this.#inline(node, depth)}</code>
      case 'Link':
      case 'Image':
        return this.#reference(node, depth)
      case 'Autolink': {
        const url = childOf(node, 'URL')
        return url === null ? this.#slice(node) : this.#span(url, depth)
      }
      case 'URL':
        return this.#drawn(key, plainAddress(this.#slice(node)), [this.#slice(node)], false)
      case 'Escape':
        return this.#slice(node).slice(1)
      case 'Entity':
        return characterOf(this.#slice(node))
      case 'HardBreak':
        return <br key={key} />
      default:
        // Tags and comments of HTML, which are shown and do nothing.
        return /^<br\s*\/?>$/i.test(this.#slice(node)) ? <br key={key} /> : <code key={key}>{this.#slice(node)}</code>
    }
  }

  #reference(node: MarkdownNode, depth: number): ReactNode {
    const marks = childrenOf(node).filter(({ name }) => name === 'LinkMark')
    const [open, close] = marks
    if (open === undefined || close === undefined) return this.#slice(node)
    const url = childOf(node, 'URL')
    const label = childOf(node, 'LinkLabel')
    const named = label !== null && label.to - label.from > 2 ? this.#slice(label) : this.#text.slice(open.to, close.from)
    const address = url === null ? this.#references.get(labelOf(named)) : plainAddress(this.#slice(url))
    if (address === undefined) return this.#slice(node)
    return this.#drawn(node.from, address, this.#inline(node, depth, open.to, close.from), node.name === 'Image')
  }

  #drawn(key: number, address: string, content: readonly ReactNode[], isImage: boolean): ReactNode {
    const children = content.length === 0 ? address : content
    return <span key={key}>{this.#link({ address, children, isImage })}</span>
  }
}

/** Returns the class of each column of a table. */
function alignsOf(delimiter: string): (string | undefined)[] {
  const columns = delimiter
    .replace(/^\s*\|/, '')
    .replace(/\|\s*$/, '')
    .split('|')
  return columns.map(column => (/^\s*:-+:\s*$/.test(column) ? 'md-center' : /-:\s*$/.test(column) ? 'md-end' : undefined))
}
