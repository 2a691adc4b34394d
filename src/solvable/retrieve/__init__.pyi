from solvable.retrieve.functions import index_documents as index_documents
from solvable.retrieve.functions import search_documents as search_documents
from solvable.retrieve.functions import train_retriever as train_retriever
from solvable.retrieve.index import Hit as Hit
from solvable.retrieve.index import Index as Index
from solvable.retrieve.request import TrainRequest as TrainRequest
from solvable.retrieve.results import Trained as Trained
