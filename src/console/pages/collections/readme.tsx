import { lazy, Suspense } from 'react'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import type { DrawLink } from '../../ui/markdown/writer.tsx'
import { webAddress } from '../memory/object/rendered.tsx'
import { text } from './text.ts'

const Markdown = lazy(() => import('../../ui/markdown/markdown.tsx').then(({ Markdown: component }) => ({ default: component })))

/** A link of a readme. It leads to the web apart from the console, or nowhere. */
const link: DrawLink = ({ address, children, isImage }) => {
  const target = isImage ? null : webAddress(address)
  return target === null ? (
    <span title={address}>{children}</span>
  ) : (
    <a href={target} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  )
}

interface ReadmeProps {
  readonly markdown: string
  /** The level of the heading above. */
  readonly headingAbove: number
}

/** The readme of a collection. Others may have written it, so pictures and HTML are shown as text. */
export function Readme({ markdown, headingAbove }: ReadmeProps) {
  if (markdown.trim() === '') return <p className="quiet">{text.noReadme}</p>
  return (
    <Suspense fallback={<Skeleton lines={4} />}>
      <Markdown text={markdown} link={link} headingAbove={headingAbove} />
    </Suspense>
  )
}
