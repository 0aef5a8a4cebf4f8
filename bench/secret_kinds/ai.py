"""Credentials of vendors of models and of what agents use."""

from bench.secret_kinds import base as b

KINDS, add = b.table("ai")
BEARER = "Authorization: Bearer {v}"
MARK = "T3BlbkFJ"  # "OpenAI" in base64


def _openai(prefix, half):
    return b.shape(prefix, (b.B64URL, half), MARK, (b.B64URL, half))


def _bedrock_long(rng):
    name = b.chars(rng, b.LOWER36, 4)
    account = b.chars(rng, b.DIGITS, 12)
    secret = b.b64(rng.randbytes(32))
    text = f"BedrockAPIKey-{name}-at-{account}:{secret}"
    return "ABSK" + b.b64(text.encode())


def _bedrock_short(rng):
    day = f"2026{rng.randint(1, 11):02d}{rng.randint(1, 28):02d}"
    key = "ASIA" + b.chars(rng, b.B32, 16)
    text = (
        "bedrock.amazonaws.com/?Action=CallWithBearerToken"
        "&X-Amz-Algorithm=AWS4-HMAC-SHA256"
        f"&X-Amz-Credential={key}%2F{day}%2Fus-east-1%2Fbedrock%2Faws4_request"
        f"&X-Amz-Date={day}T101500Z&X-Amz-Expires=43200"
        f"&X-Amz-Security-Token={b.chars(rng, b.B62, 400)}"
        f"&X-Amz-Signature={rng.randbytes(32).hex()}&X-Amz-SignedHeaders=host&Version=1"
    )
    return "bedrock-api-key-" + b.b64(text.encode())


def _zhipu(rng):
    return rng.randbytes(16).hex() + "." + b.chars(rng, b.B62, 16)


def _fal(rng):
    return b.uuid(rng) + ":" + rng.randbytes(16).hex()


for _name, _make, _names in (
    ("project", _openai("sk-proj-", 74), "OPENAI_API_KEY OPENAI_KEY"),
    ("service_account", _openai("sk-svcacct-", 74), "OPENAI_API_KEY"),
    ("admin", _openai("sk-admin-", 58), "OPENAI_ADMIN_KEY"),
    ("legacy", b.shape("sk-", (b.B62, 20), MARK, (b.B62, 20)), "OPENAI_API_KEY"),
):
    add(
        f"openai_{_name}",
        _make,
        _names,
        "OpenAI Platform: API keys; OpenRouter: Detected secret formats",
        BEARER,
        'client = OpenAI(api_key="{v}")',
    )
for _name, _prefix, _names in (
    ("api", "sk-ant-api03-", "ANTHROPIC_API_KEY CLAUDE_API_KEY"),
    ("admin", "sk-ant-admin01-", "ANTHROPIC_ADMIN_KEY"),
    ("oauth", "sk-ant-oat01-", "CLAUDE_CODE_OAUTH_TOKEN ANTHROPIC_AUTH_TOKEN"),
    ("refresh", "sk-ant-ort01-", "refreshToken"),
    ("session", "sk-ant-sid01-", "sessionKey"),
):
    add(
        f"anthropic_{_name}",
        b.pre(_prefix, 93, b.B64URL, "AA"),
        _names,
        "Claude Docs: API overview, Admin API, Claude Code authentication",
        "x-api-key: {v}",
        "curl https://api.anthropic.com/v1/messages -H 'x-api-key: {v}'",
        sure=_name in {"api", "admin"},
    )
add(
    "google_ai_auth_key",
    b.pre("AQ.Ab8", 47, b.B64URL),
    "GEMINI_API_KEY GOOGLE_API_KEY",
    "Google AI for Developers: Using Gemini API keys (auth keys)",
    "x-goog-api-key: {v}",
    sure=False,
)
add(
    "google_ai_standard_key",
    b.pre("AIzaSy", 33, b.B64URL),
    "GEMINI_API_KEY GOOGLE_GENERATIVE_AI_API_KEY",
    "Google AI for Developers: Using Gemini API keys",
    "https://generativelanguage.googleapis.com/v1beta/models?key={v}",
)
add("aws_bedrock_long", _bedrock_long, "AWS_BEARER_TOKEN_BEDROCK", "Bedrock: API keys")
add(
    "aws_bedrock_short",
    _bedrock_short,
    "AWS_BEARER_TOKEN_BEDROCK",
    "Amazon Bedrock User Guide: API keys, token generator",
    BEARER,
)
add(
    "azure_openai_key",
    b.shape(
        (b.B62, 52), "JQQJ99", "B", ("ABCDEFGHIJKL", 1), "AC", (b.B62, 10), "AAAB",
        "ACOG", (b.B62, 4),
    ),
    "AZURE_OPENAI_API_KEY AZURE_OPENAI_KEY",
    "Microsoft Purview: Azure Cognitive Service key",
    "api-key: {v}",
    sure=False,
)  # fmt: skip
for _name, _make, _names in (
    ("huggingface", b.pre("hf_", 34, b.UPPER + b.LOWER), "HF_TOKEN HUGGINGFACE_TOKEN"),
    ("replicate", b.pre("r8_", 37), "REPLICATE_API_TOKEN"),
    ("groq", b.shape("gsk_", (b.B62, 20), "WGdyb3FY", (b.B62, 24)), "GROQ_API_KEY"),
    ("xai", b.pre("xai-", 80), "XAI_API_KEY GROK_API_KEY"),
    ("cerebras", b.pre("csk-", 48, b.LOWER36), "CEREBRAS_API_KEY"),
    ("perplexity", b.pre("pplx-", 48), "PERPLEXITY_API_KEY PPLX_API_KEY"),
    ("openrouter", b.pre("sk-or-v1-", 64, b.HEX), "OPENROUTER_API_KEY"),
    ("nvidia", b.pre("nvapi-", 64, b.B64URL), "NVIDIA_API_KEY NGC_API_KEY"),
    ("tavily", b.pre("tvly-dev-", 32), "TAVILY_API_KEY"),
    ("tavily_production", b.pre("tvly-prod-", 32), "TAVILY_API_KEY"),
    ("firecrawl", b.pre("fc-", 32, b.HEX), "FIRECRAWL_API_KEY"),
    ("e2b", b.pre("e2b_", 40, b.HEX), "E2B_API_KEY"),
    ("pinecone", b.shape("pcsk_", (b.B62, 6), "_", (b.B62, 63)), "PINECONE_API_KEY"),
    ("langfuse", b.pre_uuid("sk-lf-"), "LANGFUSE_SECRET_KEY"),
    (
        "langsmith_personal",
        b.shape("lsv2_pt_", (b.HEX, 32), "_", (b.HEX, 10)),
        "LANGSMITH_API_KEY LANGCHAIN_API_KEY",
    ),
    (
        "langsmith_service",
        b.shape("lsv2_sk_", (b.HEX, 32), "_", (b.HEX, 10)),
        "LANGSMITH_API_KEY",
    ),
    ("jina", b.pre("jina_", 60, b.B64URL), "JINA_API_KEY"),
    ("elevenlabs", b.pre("sk_", 48, b.HEX), "ELEVENLABS_API_KEY XI_API_KEY"),
    ("llamacloud", b.pre("llx-", 48), "LLAMA_CLOUD_API_KEY"),
    ("daytona", b.pre("dtn_", 64, b.HEX), "DAYTONA_API_KEY"),
    ("helicone", b.shape("sk-helicone-", (b.LOWER36, 28)), "HELICONE_API_KEY"),
    ("fal", _fal, "FAL_KEY"),
    ("zhipu", _zhipu, "ZHIPUAI_API_KEY ZAI_API_KEY"),
    ("deepseek", b.pre("sk-", 32, b.HEX), "DEEPSEEK_API_KEY"),
    ("moonshot", b.pre("sk-", 48), "MOONSHOT_API_KEY"),
    ("dashscope", b.pre("sk-", 32, b.HEX), "DASHSCOPE_API_KEY"),
):
    add(_name, _make, _names, f"{_name.split('_')[0]} API documentation", BEARER)
for _name, _make, _names in (
    ("fireworks", b.pre("fw_", 22), "FIREWORKS_API_KEY"),
    ("together", b.pre("tgp_v1_", 43, b.B64URL), "TOGETHER_API_KEY"),
    ("wandb", b.shape("wandb_v1_", (b.B62, 27), "_", (b.B62, 49)), "WANDB_API_KEY"),
    ("runpod", b.pre("rpa_", 46, b.UPPER36), "RUNPOD_API_KEY"),
    ("modal_secret", b.pre("as-", 22), "MODAL_TOKEN_SECRET token_secret"),
    ("browserbase", b.pre("bb_live_", 27, b.B64URL), "BROWSERBASE_API_KEY"),
    ("voyage", b.pre("pa-", 43, b.B64URL), "VOYAGE_API_KEY"),
    ("mem0", b.pre("m0-", 40), "MEM0_API_KEY"),
    ("cursor", b.pre("key_", 64, b.HEX), "CURSOR_API_KEY"),
    ("vercel_ai_gateway", b.pre("vck_", 56), "AI_GATEWAY_API_KEY"),
):
    source = f"{_name.split('_')[0]} documentation; length as seen in the wild"
    add(_name, _make, _names, source, BEARER, sure=False)
for _name, _make, _names in (
    ("mistral", b.pre("", 32), "MISTRAL_API_KEY"),
    ("cohere", b.pre("", 40), "COHERE_API_KEY CO_API_KEY"),
    ("together_old", b.pre("", 64, b.HEX), "TOGETHER_API_KEY"),
    ("wandb_old", b.pre("", 40, b.HEX), "WANDB_API_KEY"),
    ("deepgram", b.pre("", 40, b.HEX), "DEEPGRAM_API_KEY"),
    ("assemblyai", b.pre("", 32, b.HEX), "ASSEMBLYAI_API_KEY"),
    ("exa", b.uuid, "EXA_API_KEY"),
    ("serper", b.pre("", 40, b.HEX), "SERPER_API_KEY"),
    ("azure_openai_old", b.pre("", 32, b.HEX), "AZURE_OPENAI_API_KEY"),
    ("volcengine_ark", b.uuid, "ARK_API_KEY"),
):
    add(_name, _make, _names, f"{_name.split('_')[0]} API documentation", bare=False)
