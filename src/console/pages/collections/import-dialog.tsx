import { apiErrorOf } from '../../api/api-error.ts'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { useChain } from '../routing/use-chains.ts'
import { StepsShown } from '../steps/step-list.tsx'
import type { Collection } from './search.ts'
import { text } from './text.ts'
import { useImport } from './use-collections.ts'

interface ImportDialogProps {
  readonly collection: Pick<Collection, 'slug' | 'model' | 'steps'>
  /** True: it belongs to another organisation, so it is forked first. */
  readonly isOfOthers: boolean
  readonly onClose: () => void
}

/** Asks before a collection becomes the routing of its model. It names the chain that is replaced. */
export function ImportDialog({ collection: { slug, model, steps }, isOfOthers, onClose }: ImportDialogProps) {
  const chain = useChain(model)
  const use = useImport(slug, onClose)
  return (
    <Confirm
      title={text.importTitle}
      act={text.import}
      isBusy={use.isPending}
      error={use.error && apiErrorOf(use.error)}
      onConfirm={() => use.mutate()}
      onClose={onClose}
    >
      <p>{text.importAbout(model)}</p>
      <StepsShown steps={steps} />
      <Loaded query={chain}>
        {saved =>
          saved === null ? (
            <p className="quiet">{text.importNone(model)}</p>
          ) : (
            <>
              <p>{text.importReplaces}</p>
              <StepsShown steps={saved} />
            </>
          )
        }
      </Loaded>
      {isOfOthers && <p className="quiet">{text.importForks}</p>}
    </Confirm>
  )
}
