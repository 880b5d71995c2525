import { lazy, type RefObject, Suspense, useState } from 'react'
import { Segmented } from '../../../ui/forms/choices.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Rendered } from '../object/rendered.tsx'
import { isMarkdownName, isRecord, nameOf } from '../places.ts'
import type { EditorHandle } from './code-editor.tsx'
import { editText } from './text.ts'

const CodeEditor = lazy(() => import('./code-editor.tsx').then(({ CodeEditor: component }) => ({ default: component })))

interface DraftPanelProps {
  readonly path: string
  readonly isNew: boolean
  /** The text that the editor begins with, and how often it began again. */
  readonly start: { readonly text: string; readonly round: number }
  readonly editor: RefObject<EditorHandle | null>
  readonly onChange: (isChanged: boolean) => void
  readonly onSave: () => void
}

/** The editor, and for Markdown what the text will look like. */
export function DraftPanel({ path, isNew, start, editor, onChange, onSave }: DraftPanelProps) {
  const name = nameOf(path)
  const [mode, setMode] = useState<'write' | 'preview'>('write')
  const text = mode === 'preview' ? (editor.current?.read() ?? start.text) : ''
  return (
    <section className="panel memory-draft" aria-label={editText.label(name)}>
      <div className="memory-draft-head">
        <span className="quiet">{isNew ? editText.newHint : isRecord(path) ? editText.recordHint : editText.hint}</span>
        {isMarkdownName(path) && (
          <Segmented
            label={editText.mode}
            value={mode}
            onChange={setMode}
            options={[
              { value: 'write', label: editText.write },
              { value: 'preview', label: editText.preview },
            ]}
          />
        )}
      </div>
      <div hidden={mode === 'preview'} className="memory-draft-body">
        <Suspense fallback={<Skeleton lines={8} />}>
          <CodeEditor
            key={start.round}
            text={start.text}
            label={editText.label(name)}
            isMarkdown={isMarkdownName(path)}
            onChange={onChange}
            onSave={onSave}
            onReady={handle => {
              editor.current = handle
            }}
          />
        </Suspense>
      </div>
      {mode === 'preview' && (
        <div className="memory-text">{text.trim() === '' ? <p className="quiet">{editText.emptyPreview}</p> : <Rendered path={path} text={text} />}</div>
      )}
    </section>
  )
}
