import { useBlocker, useNavigate } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { Crumbs } from '../folder/crumbs.tsx'
import { folderOf, nameOf, type Places } from '../places.ts'
import type { EditorHandle } from './code-editor.tsx'
import { DraftNewer } from './draft-newer.tsx'
import { DraftPanel } from './draft-panel.tsx'
import { MergeView } from './merge-view.tsx'
import { editText } from './text.ts'
import { type Base, type Theirs, useSave } from './use-save.ts'

interface DraftProps {
  readonly places: Places
  readonly path: string
  /** What the person began with. A later value changes nothing. */
  readonly first: Base
  /** When that was read. */
  readonly readAtMs: number
}

/** A text that is being written, until it is saved or given up. If somebody was faster, it shows the merge. */
export function Draft({ places, path, first, readAtMs }: DraftProps) {
  const navigate = useNavigate()
  const name = nameOf(path)
  const [base, setBase] = useState(first)
  const [baseAtMs, setBaseAtMs] = useState(readAtMs)
  /** The text that the editor begins with, and how often it began again. */
  const [start, setStart] = useState({ text: first.text, round: 0 })
  const [isChanged, setChanged] = useState(false)
  const [conflict, setConflict] = useState<{ readonly theirs: Theirs; readonly yours: string } | null>(null)
  const editor = useRef<EditorHandle>(null)
  const isDone = useRef(false)
  const leave = (): void => {
    const to = first.etag === null && conflict === null ? folderOf(path).slice(0, -1) : path
    void navigate({ to: '/memory/$', params: { _splat: to }, search: {}, replace: true })
  }
  const save = useSave(path, () => {
    isDone.current = true
    toast(editText.saved(name))
    void navigate({ to: '/memory/$', params: { _splat: path }, search: {}, replace: true })
  })
  const send = (text: string, from: Base): void => {
    if (save.isPending) return
    save.mutate(
      { text, base: from },
      {
        onSuccess: result => {
          if (result.isSaved) return
          setBase(from)
          setConflict({ theirs: result.theirs, yours: text })
        },
      },
    )
  }
  const blocker = useBlocker({
    shouldBlockFn: () => !isDone.current && (isChanged || conflict !== null),
    enableBeforeUnload: () => !isDone.current && isChanged,
    withResolver: true,
  })
  const error = save.error === null ? null : apiErrorOf(save.error)
  const guard = blocker.status === 'blocked' && (
    <Confirm title={editText.leaveTitle} act={editText.leaveAct} isBusy={false} error={null} onConfirm={blocker.proceed} onClose={blocker.reset}>
      <p>{editText.leave}</p>
    </Confirm>
  )
  if (conflict !== null)
    return (
      <Page title={name} above={<Crumbs places={places} path={path} />}>
        <MergeView
          key={conflict.theirs.etag}
          base={base.text}
          theirs={conflict.theirs}
          yours={conflict.yours}
          isBusy={save.isPending}
          error={error}
          onDiscard={() => {
            isDone.current = true
            leave()
          }}
          onSave={text => send(text, { ...base, text: conflict.theirs.text ?? '', etag: conflict.theirs.etag })}
          onEdit={text => {
            setBaseAtMs(Date.now())
            setBase({ ...base, text: conflict.theirs.text ?? '', etag: conflict.theirs.etag })
            setStart({ text, round: start.round + 1 })
            setChanged(true)
            setConflict(null)
          }}
        />
        {guard}
      </Page>
    )
  const submit = (): void => send(editor.current?.read() ?? start.text, base)
  const isReady = isChanged || first.etag === null || start.round > 0
  return (
    <Page
      title={name}
      above={<Crumbs places={places} path={path} />}
      actions={
        <>
          <Button onClick={leave}>{editText.cancel}</Button>
          <Button look="primary" icon="check" isBusy={save.isPending} disabled={!isReady} onClick={submit}>
            {editText.save}
          </Button>
        </>
      }
    >
      {error && <InlineError error={error} />}
      {!save.isPending && <DraftNewer path={path} base={base} shown={{ etag: base.etag, readAtMs: baseAtMs }} />}
      <DraftPanel path={path} isNew={first.etag === null} start={start} editor={editor} onChange={setChanged} onSave={() => isReady && submit()} />
      {guard}
    </Page>
  )
}
