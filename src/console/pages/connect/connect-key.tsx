import { useEffect } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { Code } from '../../ui/data/code.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { SecretPanel } from '../../ui/overlays/secret-panel.tsx'
import { text } from './text.ts'
import { type KeyWanted, useMakeKey } from './use-make-key.ts'

interface ConnectKeyProps {
  readonly wanted: KeyWanted
  /** What the key does for the client. */
  readonly about: string
  /** True while the secret is shown, so that nothing takes the panel away. */
  readonly onSecret?: ((isShown: boolean) => void) | undefined
}

/** The key of the client: made with one click, with the least scope, for 30 days, and shown once. */
export function ConnectKey({ wanted, about, onSecret }: ConnectKeyProps) {
  const make = useMakeKey()
  const isShown = make.data !== undefined
  useEffect(() => {
    onSecret?.(isShown)
    return () => onSecret?.(false)
  }, [isShown, onSecret])
  return (
    <div className="stack-3">
      <p className="quiet">
        {about} {wanted.scope === 'full' ? text.keyFull : text.keyCalls}
      </p>
      {make.error && <InlineError error={apiErrorOf(make.error)} />}
      <div>
        <Button icon="key" isBusy={make.isPending} onClick={() => make.mutate(wanted)}>
          {text.makeKey}
        </Button>
      </div>
      <Code text="export BRIGADE_KEY=br-…" label={text.exportKey} />
      {make.data && (
        <SecretPanel
          title={text.secretTitle(make.data.name)}
          secret={make.data.key}
          variable="BRIGADE_KEY"
          clients={[{ id: 'export', label: 'Terminal', text: `export BRIGADE_KEY=${make.data.key}` }]}
          onDone={() => make.reset()}
        >
          <p>{text.secret}</p>
        </SecretPanel>
      )}
    </div>
  )
}
