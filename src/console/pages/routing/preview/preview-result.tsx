import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { apiQuery } from '../../../api/queries.ts'
import { LinkButton } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { reasonText } from '../../playground/text.ts'
import { RouteList } from '../../steps/route-list.tsx'
import { previewText as text } from '../text.ts'
import type { Preview } from './preview-body.ts'

const typingMs = 300

/** Returns a value a moment after it last changed, so that a person who types sends one request. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  const name = JSON.stringify(value)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text of the value says whether it has changed.
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), typingMs)
    return () => clearTimeout(timer)
  }, [name])
  return settled
}

interface PreviewResultProps {
  readonly body: { readonly model?: string }
  /** True: the steps of a draft are in the body. */
  readonly isDraft?: boolean
}

/** Where the call would go and why, as the gateway decides it. It follows what a person changes. */
export function PreviewResult({ body, isDraft = false }: PreviewResultProps) {
  const settled = useSettled(body)
  const preview = useQuery({ ...apiQuery('previewRoute', { body: settled }), placeholderData: keepPreviousData, retry: false })
  const isBehind = preview.isFetching || JSON.stringify(settled) !== JSON.stringify(body)
  if (preview.isError && !isBehind) return <Refused error={preview.error} />
  if (preview.data === undefined) return <p className="quiet">{text.waiting}</p>
  return (
    <div className={isBehind ? 'preview-result preview-behind' : 'preview-result'} aria-busy={isBehind} role="status">
      <Chosen preview={preview.data} isDraft={isDraft} />
      <RouteList candidates={preview.data.candidates} />
    </div>
  )
}

function Chosen({ preview: { model, provider, reason, preset }, isDraft }: { readonly preview: Preview; readonly isDraft: boolean }) {
  const why = isDraft && reason === 'request_fallbacks' ? text.draft : reason === 'saved_chain' ? text.saved : reasonText(reason)
  return (
    <p className="preview-first">
      <Icon name="right" />
      <span>
        <code>{model}</code> {text.on} <code>{provider}</code>. <span className="quiet">{preset === undefined ? why : `${preset}: ${why}`}</span>
      </span>
    </p>
  )
}

const ofRoutes = new Set(['no_route', 'no_route_virtual', 'byok_required', 'model_gated'])

function Refused({ error }: { readonly error: unknown }) {
  const { message, code } = apiErrorOf(error)
  return (
    <div className="preview-refused" role="alert">
      <Icon name="warn" />
      <div className="stack-3">
        <p>{message}</p>
        <p className="quiet">{text.failedHint}</p>
        {ofRoutes.has(code) && (
          <div>
            <LinkButton size="sm" to="/providers">
              {text.toProviders}
            </LinkButton>
          </div>
        )}
      </div>
    </div>
  )
}
