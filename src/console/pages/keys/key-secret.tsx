import type { ReactNode } from 'react'
import { SecretPanel } from '../../ui/overlays/secret-panel.tsx'

const variable = 'BRIGADE_KEY'

function clientsOf(origin: string, secret: string) {
  return [
    {
      id: 'curl',
      label: 'curl',
      text: `curl ${origin}/v1/chat/completions \\\n  -H "authorization: Bearer ${secret}" \\\n  -H "content-type: application/json" \\\n  -d '{"model":"auto","messages":[{"role":"user","content":"Hello"}]}'`,
    },
    { id: 'env', label: 'OpenAI SDK', text: `OPENAI_BASE_URL=${origin}/v1\nOPENAI_API_KEY=${secret}` },
    { id: 'python', label: 'Python', text: `from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/v1", api_key="${secret}")` },
    { id: 'claude', label: 'Claude Code', text: `export BRIGADE=${origin}\nexport BRIGADE_KEY=${secret}\nnpx brigade connect claude-code --write` },
  ]
}

interface KeySecretProps {
  readonly title: string
  readonly secret: string
  readonly children: ReactNode
  readonly onDone: () => void
}

/** The secret of a key, once, with what clients need. */
export function KeySecret({ title, secret, children, onDone }: KeySecretProps) {
  return (
    <SecretPanel title={title} secret={secret} variable={variable} clients={clientsOf(location.origin, secret)} onDone={onDone}>
      <p>{children}</p>
    </SecretPanel>
  )
}
