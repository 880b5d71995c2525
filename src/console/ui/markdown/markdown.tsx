import { useMemo } from 'react'
import './markdown.css'
import { markdown, referencesOf } from './parse.ts'
import { type DrawLink, MarkdownWriter } from './writer.tsx'

interface MarkdownProps {
  readonly text: string
  readonly link: DrawLink
  /** The level of the heading above. Headings of the text begin one below. */
  readonly headingAbove?: number
}

/** A Markdown text as elements of the page. Pictures and HTML of the text are shown as text, because others wrote it. */
export function Markdown({ text, link, headingAbove = 1 }: MarkdownProps) {
  const blocks = useMemo(() => {
    const root = markdown.parse(text).topNode
    return new MarkdownWriter(text, referencesOf(root, text), { link, headingAbove }).document(root)
  }, [text, link, headingAbove])
  return <div className="md">{blocks}</div>
}
