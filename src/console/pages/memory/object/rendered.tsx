import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useCallback } from 'react'
import { Icon } from '../../../ui/icon.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import type { DrawLink } from '../../../ui/markdown/writer.tsx'
import { linkedKey } from '../places.ts'

const Markdown = lazy(() => import('../../../ui/markdown/markdown.tsx').then(({ Markdown: component }) => ({ default: component })))

/** A Markdown text of memory. Relative links lead to other objects. A link to the web opens apart, and gets no address of the console. */
export function Rendered({ path, text }: { readonly path: string; readonly text: string }) {
  const link = useCallback<DrawLink>(
    ({ address, children, isImage }) => {
      const content = isImage ? (
        <span className="md-image">
          <Icon name="file" size={14} />
          {children}
        </span>
      ) : (
        children
      )
      const target = webAddress(address)
      const key = target === null ? linkedKey(path, address) : null
      if (key !== null)
        return (
          <Link to="/memory/$" params={{ _splat: key }}>
            {content}
          </Link>
        )
      return target === null ? (
        <span title={address}>{content}</span>
      ) : (
        <a href={target} target="_blank" rel="noreferrer noopener">
          {content}
        </a>
      )
    },
    [path],
  )
  return (
    <Suspense fallback={<Skeleton lines={6} />}>
      <Markdown text={text} link={link} />
    </Suspense>
  )
}

/** Returns an address that a browser may open: of the web, or of mail. Null for others, such as scripts. */
export function webAddress(address: string): string | null {
  const text = /^www\./i.test(address) ? `https://${address}` : /^[^\s:/@]+@[^\s:/@]+\.[^\s:/@]+$/.test(address) ? `mailto:${address}` : address
  return /^(https?:\/\/|mailto:)/i.test(text) ? text : null
}
