"""The cues of French. They only rank: which of two statements holds is not known by them."""

from __future__ import annotations

from policyctx.compaction.extractive.languages.language import Language

FRENCH = Language(
    name="French",
    orders=(
        "doit", "doivent", "dois", "il faut", "faut", "jamais", "toujours", "pas", "aucun",
        "aucune",
        "seulement", "uniquement", "au plus", "au moins", "au maximum", "maximum", "interdit",
        "autorisé", "éviter", "évite", "évitez", "sans", "sauf", "avant", "limite", "délai",
        "préfère", "préférons", "veux", "voulons", "besoin", "veuillez", "merci de", "attention",
        "obligatoire", "impératif", "chaque", "plutôt", "gardez", "garde", "ne touche", "surtout",
    ),
    choices=(
        "décidé", "décision", "choisi", "retenu", "convenu", "parce que", "car", "raison", "cause",
        "trouvé", "confirmé", "résultat", "corrigé", "on part sur", "validé",
    ),
    setbacks=(
        "échoué", "échec", "ne marche pas", "ne fonctionne pas", "abandonné", "rejeté", "écarté",
        "annulé", "refusé", "sans succès", "n'a pas marché",
    ),
    remedies=("corrigé", "résolu", "réparé", "remarche"),
    unfinished=("pas encore", "encore", "en attente", "reste", "restent", "en cours", "manque"),
    wanted_failures=("doit échouer", "comme prévu", "reproduire"),
    all_tasks=("toutes les tâches", "tous les points", "toutes les étapes"),
    nothing_open=("rien", "aucune tâche", "aucun point"),
    withdrawals=("oublie", "laisse tomber", "plus besoin", "pas besoin", "annule"),
    objections=("non", "pas ça", "pas comme ça", "plutôt", "surtout pas", "faux"),
    refusals=("ne", "n'", "jamais", "arrête"),
    acknowledged=(
        "merci", "parfait", "bien", "très", "super", "bonjour", "salut", "oui", "d'accord",
        "entendu",
        "génial", "beaucoup", "bonsoir", "compris", "noté", "vas-y", "continue", "ça", "marche",
    ),
    errands=("peux-tu", "pouvez-vous", "pas", "avant", "veux", "besoin", "s'il te plaît"),
    wishes=(
        "préfère", "préférons", "plutôt", "style", "ton", "format", "désormais", "toujours",
        "j'aime", "je déteste", "de préférence", "en général", "court", "courte",
    ),
    roles=(
        "contacter", "contactez", "contact", "demande", "demander", "responsable", "chef", "cheffe",
        "directeur", "directrice", "collègue", "monsieur", "madame", "client", "cliente", "charge",
        "s'occupe",
    ),
    aims=("objectif", "but", "cible", "au final", "l'essentiel"),
    states=("état", "statut", "actuellement", "pour l'instant", "jusqu'ici", "en cours", "essayé"),
)  # fmt: skip
