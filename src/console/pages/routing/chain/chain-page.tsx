import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { useOwners } from '../../../app/whom-to-ask.ts'
import { Button, LinkButton } from '../../../ui/forms/button.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import type { Step } from '../../steps/draft-steps.ts'
import { StepsShown } from '../../steps/step-list.tsx'
import { type Model, useModelsById } from '../../steps/use-models.ts'
import { CallFields } from '../preview/call-fields.tsx'
import { previewBody, usualCall } from '../preview/preview-body.ts'
import { PreviewResult } from '../preview/preview-result.tsx'
import '../routing.css'
import { previewText, chainText as text } from '../text.ts'
import { useChain, useRemoveChain } from '../use-chains.ts'
import { ChainEditor } from './chain-editor.tsx'

const route = getRouteApi('/routing/chain')

/** The chain of one model. A model without a chain begins with a draft. */
export function ChainPage() {
  const { model: id } = route.useSearch()
  const models = useModelsById()
  const model = models?.get(id)
  if (model !== undefined && model.kind !== 'virtual') return <KnownChain key={id} model={model} />
  return (
    <Page title={text.title(id)} above={<Crumbs />}>
      <Panel>
        {models === undefined ? (
          <Skeleton lines={4} height={28} />
        ) : (
          <Empty icon="model" title={text.unknownTitle} action={<LinkButton to="/routing">{text.back}</LinkButton>}>
            {model === undefined ? text.unknown(id) : text.virtual(id)}
          </Empty>
        )}
      </Panel>
    </Page>
  )
}

function Crumbs() {
  return (
    <nav className="crumbs" aria-label="Pages above">
      <Link to="/routing">{text.back}</Link>
    </nav>
  )
}

function KnownChain({ model }: { readonly model: Model }) {
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const chain = useChain(model.id)
  const [isRemoving, setRemoving] = useState(false)
  return (
    <Page
      title={text.title(model.id)}
      above={<Crumbs />}
      intro={text.intro(model.id)}
      actions={
        isAdmin &&
        chain.data && (
          <Button look="danger" icon="trash" onClick={() => setRemoving(true)}>
            {text.remove}
          </Button>
        )
      }
    >
      <Loaded query={chain} skeleton={<Skeleton lines={5} height={28} />}>
        {saved =>
          isAdmin ? (
            <ChainEditor model={model} saved={saved} preview={(steps, isDraft) => <ChainPreview model={model} steps={steps} isDraft={isDraft} />} />
          ) : (
            <div className="routing-columns">
              <Panel title={text.steps}>
                <div className="stack-3">
                  {saved === null ? <p>{text.none}</p> : <StepsShown steps={saved} />}
                  <p className="quiet">{text.membersOnly(owners)}</p>
                </div>
              </Panel>
              <ChainPreview model={model} steps={undefined} isDraft={false} />
            </div>
          )
        }
      </Loaded>
      {isRemoving && <RemoveChain model={model.id} onClose={() => setRemoving(false)} />}
    </Page>
  )
}

interface ChainPreviewProps {
  readonly model: Model
  /** Steps that are not saved. Undefined: what is saved. */
  readonly steps: readonly Step[] | undefined
  readonly isDraft: boolean
}

/** Where a call of the model would go with the steps as they are now. */
function ChainPreview({ model: { id, kind }, steps, isDraft }: ChainPreviewProps): ReactNode {
  const [call, setCall] = useState(usualCall)
  return (
    <Panel title={previewText.title} note={previewText.note}>
      <div className="stack-5">
        <CallFields model={id} kind={kind} value={call} onChange={setCall} isChain />
        <PreviewResult body={previewBody(id, kind, call, steps)} isDraft={isDraft} />
      </div>
    </Panel>
  )
}

function RemoveChain({ model, onClose }: { readonly model: string; readonly onClose: () => void }) {
  const toList = useNavigate()
  const remove = useRemoveChain(model, () => void toList({ to: '/routing' }))
  return (
    <Confirm
      title={text.removeTitle}
      act={text.remove}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{text.removeAbout(model)}</p>
    </Confirm>
  )
}
